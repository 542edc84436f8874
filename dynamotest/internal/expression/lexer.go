package expression

import "strings"

type tokenKind uint8

const (
	tokenEnd     tokenKind = iota
	tokenInvalid           // a character that cannot begin a token
	tokenName
	tokenNameRef  // #name
	tokenValueRef // :value
	tokenNumber
	tokenAnd
	tokenOr
	tokenNot
	tokenBetween
	tokenIn
	tokenSet
	tokenRemove
	tokenAdd
	tokenDelete
	tokenEqual
	tokenNotEqual
	tokenLess
	tokenLessEqual
	tokenGreater
	tokenGreaterEqual
	tokenOpen
	tokenClose
	tokenOpenIndex
	tokenCloseIndex
	tokenComma
	tokenDot
	tokenPlus
	tokenMinus
)

type token struct {
	kind       tokenKind
	start, end int
}

// scan reads the token at or after an offset.
func scan(source string, at int) token {
	for at < len(source) && isSpace(source[at]) {
		at++
	}
	if at == len(source) {
		return token{kind: tokenEnd, start: at, end: at}
	}
	one := func(kind tokenKind) token { return token{kind: kind, start: at, end: at + 1} }
	two := func(second byte) bool { return at+1 < len(source) && source[at+1] == second }
	switch c := source[at]; {
	case isLetter(c):
		end := endOfWord(source, at+1)
		return token{kind: keyword(source[at:end]), start: at, end: end}
	case c == '0': // a number has no leading zeros
		return one(tokenNumber)
	case isDigit(c):
		end := at + 1
		for end < len(source) && isDigit(source[end]) {
			end++
		}
		return token{kind: tokenNumber, start: at, end: end}
	case c == '#' || c == ':':
		end := endOfWord(source, at+1)
		switch {
		case end == at+1:
			return one(tokenInvalid)
		case c == '#':
			return token{kind: tokenNameRef, start: at, end: end}
		default:
			return token{kind: tokenValueRef, start: at, end: end}
		}
	case c == '<' && two('>'):
		return token{kind: tokenNotEqual, start: at, end: at + 2}
	case c == '<' && two('='):
		return token{kind: tokenLessEqual, start: at, end: at + 2}
	case c == '>' && two('='):
		return token{kind: tokenGreaterEqual, start: at, end: at + 2}
	default:
		if kind := symbol(c); kind != tokenInvalid {
			return one(kind)
		}
		end := at + 1
		// A message must contain whole characters.
		for end < len(source) && source[end]&0xC0 == 0x80 {
			end++
		}
		return token{kind: tokenInvalid, start: at, end: end}
	}
}

func symbol(c byte) tokenKind {
	switch c {
	case '=':
		return tokenEqual
	case '<':
		return tokenLess
	case '>':
		return tokenGreater
	case '(':
		return tokenOpen
	case ')':
		return tokenClose
	case '[':
		return tokenOpenIndex
	case ']':
		return tokenCloseIndex
	case ',':
		return tokenComma
	case '.':
		return tokenDot
	case '+':
		return tokenPlus
	case '-':
		return tokenMinus
	default:
		return tokenInvalid
	}
}

// keyword returns the kind of a word that is a keyword. A keyword is reserved in every kind of
// expression and at every place.
func keyword(word string) tokenKind {
	var candidate string
	var kind tokenKind
	switch word[0] | 0x20 {
	case 'a':
		if candidate, kind = "AND", tokenAnd; len(word) > 1 && word[1]|0x20 == 'd' {
			candidate, kind = "ADD", tokenAdd
		}
	case 'b':
		candidate, kind = "BETWEEN", tokenBetween
	case 'd':
		candidate, kind = "DELETE", tokenDelete
	case 'i':
		candidate, kind = "IN", tokenIn
	case 'n':
		candidate, kind = "NOT", tokenNot
	case 'o':
		candidate, kind = "OR", tokenOr
	case 'r':
		candidate, kind = "REMOVE", tokenRemove
	case 's':
		candidate, kind = "SET", tokenSet
	}
	if candidate == "" || !strings.EqualFold(word, candidate) {
		return tokenName
	}
	return kind
}

func endOfWord(source string, at int) int {
	for at < len(source) && (isLetter(source[at]) || isDigit(source[at]) || source[at] == '_') {
		at++
	}
	return at
}

func isSpace(c byte) bool { return c == ' ' || c == '\t' || c == '\n' || c == '\r' }

func isLetter(c byte) bool { return 'a' <= c|0x20 && c|0x20 <= 'z' }

func isDigit(c byte) bool { return '0' <= c && c <= '9' }
