package main

import (
	"fmt"
	"regexp"
	"strings"
)

const longestSentence = 30

var (
	comment     = regexp.MustCompile(`^\s*//\s?`)
	sentenceEnd = regexp.MustCompile(`[.:;?!](\s|$)`)
)

// longSentences lists the sentences of comments and pages that have many words. Lists, tables and
// indented code end a sentence.
func longSentences(name string, source []byte) (found []finding) {
	f, err := split(name, source)
	if err != nil {
		return nil
	}
	var (
		text  strings.Builder
		first int
		last  int
	)
	flush := func() {
		for _, sentence := range sentenceEnd.Split(text.String(), -1) {
			if words := len(strings.Fields(sentence)); words > longestSentence {
				found = append(found, finding{name, first, fmt.Sprintf("a sentence of %d words: %s", words, strings.TrimSpace(sentence))})
			}
		}
		text.Reset()
	}
	for _, line := range f.wide {
		plain := comment.ReplaceAllString(line.text, "")
		breaks := plain == "" || strings.HasPrefix(plain, "\t") || strings.HasPrefix(plain, " ") || strings.ContainsAny(plain[:1], "|-#<")
		if breaks || line.line != last+1 {
			flush()
		}
		last = line.line
		if plain == "" {
			continue
		}
		if text.Len() == 0 {
			first = line.line
		}
		if comment.MatchString(line.text) || strings.HasSuffix(name, ".md") {
			text.WriteString(strings.TrimLeft(plain, "|-# ") + " ")
		}
	}
	flush()
	return found
}
