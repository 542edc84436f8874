package main

import "regexp"

// A rule refuses words. The house rules for prose are in CONTRIBUTING.md.
type rule struct {
	name    string         // the name by which an exception refers to the rule
	words   *regexp.Regexp // the refused words, regardless of case
	allowed *regexp.Regexp // phrases in which a word is right, or nil
	instead string
	inText  bool
	inNames bool // in identifiers, taken as phrases: carryOut is "carry out"
}

// Old, indirect or unusual words for which technical English has a standard one.
var rules = []rule{
	word("give", `give|gives|gave|giving`, "return, pass, set, provide").
		unless(`(give|gives|gave|giving) (it |them |this )?up`),
	word("tell", `tell|tells|telling|told`, "report, say, show"),
	word("anew", `anew`, "again"),
	word("mend", `mend|mends|mended|mending`, "fix, repair"),
	word("for ever", `for ever`, "forever"),
	word("but for", `but for`, "except"),
	word("give or take", `give or take`, "plus or minus"),
	word("whence", `whence|thereof|thereby|therein|whereof|wherein|hereby|herein`, "a plain sentence"),
	word("of which nobody", `of which nobody|about which nobody`, "name who does not know it"),
	word("shall", `shall`, "must, will"),

	// Terms that were private to this project.
	word("look", `first look|second look|first looks|second looks`, "live read, trailing read"),
	term("sweep", `sweep|sweeps|swept|sweeping|sweeper`, "reconciliation"),
	term("roster", `roster|rosters`, "membership"),
	term("beat", `beat|beats`, "heartbeat"),
	word("struck off", `struck off|strike off|strikes off`, "evicted"),
	term("standing", `standing`, "group progress"),
	term("hear", `hear|hears|heard`, "observe"),
	term("offer", `offer|offers|offered|offering`, "enqueue; has, provides"),
	term("settle", `settle|settles|settled|settling`, "mark idle, resolve the outcome, prune, drain"),
	term("verdict", `verdict|verdicts`, "disposition"),
	term("carry out", `carry out|carries out|carried out`, "apply, execute"),
	term("refit", `refit|refits|refitted`, "adapt to the head"),
	name("elsewhere", `elsewhere`, "external positions"),
	term("weather", `weather`, "fault mix"),
	term("luck", `luck|lucky`, "draw"),
	term("harm", `harm|harms|harmed`, "disrupt"),
	term("rage", `rage|rages|raging`, "disrupt"),
	term("crew", `crew|crews`, "worker pool"),
	name("makes room", `makes room`, "slot timeout"),
}

// word refuses words in text.
func word(name, words, instead string) rule {
	return rule{name: name, words: phrases(words), instead: instead, inText: true}
}

// term refuses words in text and in identifiers.
func term(name, words, instead string) rule {
	return rule{name: name, words: phrases(words), instead: instead, inText: true, inNames: true}
}

// name refuses words in identifiers.
func name(name, words, instead string) rule {
	return rule{name: name, words: phrases(words), instead: instead, inNames: true}
}

// unless returns the rule with phrases in which the word is right.
func (r rule) unless(allowed string) rule {
	r.allowed = phrases(allowed)
	return r
}

func phrases(words string) *regexp.Regexp { return regexp.MustCompile(`(?i)\b(` + words + `)\b`) }

// find returns a refused word in a text, or an empty string.
func (r rule) find(text string) string {
	if r.allowed != nil {
		text = r.allowed.ReplaceAllString(text, "")
	}
	return r.words.FindString(text)
}
