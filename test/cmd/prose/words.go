package main

import (
	_ "embed"
	"fmt"
	"regexp"
	"strings"
)

//go:embed words.txt
var words string

// A rule refuses words.
type rule struct {
	name    string         // an exception refers to the rule by this name
	words   *regexp.Regexp // the refused words, regardless of case
	instead string
	inText  bool
	inNames bool
}

var rules = parseRules(words)

// parseRules reads a list in the format of words.txt. It panics on an invalid line, since the list
// is a part of the program.
func parseRules(list string) (rules []rule) {
	for n, line := range strings.Split(list, "\n") {
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		columns := strings.Split(line, "\t")
		if len(columns) < 4 {
			panic(fmt.Sprintf("line %d of words.txt has %d columns, fewer than 4", n+1, len(columns)))
		}
		rules = append(rules, rule{
			name: columns[0], words: regexp.MustCompile(`(?i)\b(` + columns[2] + `)\b`), instead: columns[3],
			inText: columns[1] != "names", inNames: columns[1] != "text",
		})
	}
	return rules
}

// find returns a refused word of a text, or an empty string.
func (r rule) find(text string) string { return r.words.FindString(text) }
