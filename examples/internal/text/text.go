// Package text checks names that people type and others read.
package text

import (
	"fmt"
	"unicode"
	"unicode/utf8"
)

// Fault returns what is wrong with a name: it is blank, or it looks different from its content
// because of characters that are invisible or that change the direction of the text around them.
// The result is empty for a valid name of any script: Hebrew and Arabic take their direction from
// their letters.
func Fault(name string) string {
	if !utf8.ValidString(name) {
		return "it must be valid UTF-8"
	}
	visible, before, runes := false, ' ', []rune(name)
	for i, r := range runes {
		switch {
		case isVariation(r) && isVisible(before):
		case isJoiner(r) && (isVisible(before) || isVariation(before)) && i+1 < len(runes) && isVisible(runes[i+1]):
		case isInvisible(r):
			return fmt.Sprintf("it has an invisible character (%U), remove it or type the name again", r)
		default:
			visible = visible || unicode.In(r, unicode.L, unicode.N, unicode.P, unicode.S)
		}
		before = r
	}
	if !visible {
		return "it must not be blank"
	}
	return ""
}

// isJoiner reports whether r changes the form of its neighbours, as in Persian and in emoji.
func isJoiner(r rune) bool { return r == '\u200c' || r == '\u200d' }

// isVariation reports whether r chooses a form of the character before it, for example of an emoji.
func isVariation(r rune) bool { return unicode.Is(unicode.Variation_Selector, r) }

func isVisible(r rune) bool { return !unicode.IsSpace(r) && !isInvisible(r) }

const brailleBlank = '\u2800'

// isInvisible matches control and format characters, including those that set a direction, and
// letters without a shape.
func isInvisible(r rune) bool {
	return !unicode.IsGraphic(r) || r == brailleBlank || isVariation(r) || unicode.Is(unicode.Other_Default_Ignorable_Code_Point, r)
}
