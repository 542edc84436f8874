package main

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestRefusedWordsAreFound(t *testing.T) {
	t.Parallel()
	for source, want := range map[string]string{
		"// F returns a number anew.\nfunc F() {}":                                      `f.go:3: "anew"`,
		"var err = errors.New(\"the roster is full\")":                                  `f.go:3: "roster"`,
		"func strikeOff() {}":                                                           `f.go:3: "strike off"`,
		"// F mends it.\nfunc F() {}":                                                   `f.go:3: "mends"`,
		"func mends() {}":                                                               "",
		"// F gives, tells, hears, offers and carries it out.\nfunc F() {}":             "",
		"// An average.\nvar averages, screws int":                                      "",
		"//prose:allow crew: the term of the wire protocol\n\n// A crew.\nvar crew int": "",
		"//prose:allow crew:\n\n// A crew.\nvar x int":                                  `f.go:5: "crew"`,
		"//go:generate crew\nvar x int":                                                 "",
	} {
		assertFound(t, check("f.go", []byte("package f\n\n"+source+"\n")), want, source)
	}
}

func TestStringsOfTestsAreData(t *testing.T) {
	t.Parallel()
	assert.Empty(t, check("f_test.go", []byte("package f\n\nvar x = \"mends\"\n")))
}

func TestLinesBeyondTheColumnsAreFound(t *testing.T) {
	t.Parallel()
	fits, wide := strings.Repeat("x", 97), strings.Repeat("x", 98)
	assert.Empty(t, check("f.go", []byte("package f\n\n// "+fits+"\n")))
	assertFound(t, check("f.go", []byte("package f\n\n// "+wide+"\n")), "f.go:3: the line has 101 columns", wide)
	assertFound(t, check("f.go", []byte("package f\n\nvar x = 1 // "+wide+"\n")), "f.go:3: the line has", wide)
	assertFound(t, check("f.go", []byte("package f\n\nfunc f() {\n\t// "+wide[3:]+"\n}\n")), "f.go:4: the line has 102", wide)
	assert.Empty(t, check("f.go", []byte("package f\n\nvar "+wide+" = 1\n")), "code")
	assert.Empty(t, check("f.go", []byte("package f\n\n// https://"+wide+"\n")), "an address")
}

func TestPagesAreCheckedOutsideOfCode(t *testing.T) {
	t.Parallel()
	wide := strings.Repeat("x", 101)
	for source, want := range map[string]string{
		"It mends more.":           `p.md:1: "mends"`,
		"It has `tells`.":          "",
		"```\nIt mends more.\n```": "",
		"```\n" + wide + "\n```":   "",
		"| " + wide + " |":         "",
		"| It mends more. |":       `p.md:1: "mends"`,
		wide:                       "p.md:1: the line has 101 columns",
		"<!-- prose:allow mend: a quotation -->\nIt mends more.": "",
	} {
		assertFound(t, check("p.md", []byte(source)), want, source)
	}
}

func TestLongSentencesAreListed(t *testing.T) {
	t.Parallel()
	short := strings.TrimSpace(strings.Repeat("word ", 30))
	assert.Empty(t, longSentences("p.md", []byte(short+". "+short+".\n\n"+short+"\n- "+short)))
	assertFound(t, longSentences("p.md", []byte("One.\n\n"+short+"\nmore.")), "p.md:3: a sentence of 31 words", short)
	assertFound(t, longSentences("f.go", []byte("package f\n\n// "+short+"\n// more.\n")), "f.go:3: a sentence of 31 words", short)
}

func assertFound(t *testing.T, found []finding, want, source string) {
	t.Helper()
	if want == "" {
		assert.Empty(t, found, source)
		return
	}
	if assert.Len(t, found, 1, source) {
		assert.True(t, strings.HasPrefix(found[0].String(), want), "%s: %s", source, found[0])
	}
}
