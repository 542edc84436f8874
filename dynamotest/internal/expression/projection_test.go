package expression_test

import (
	"strings"
	"testing"
)

func TestProjections(t *testing.T) {
	t.Parallel()
	check(t, projections, ourProjection)
}

func TestProjectionsOnDynamoDBLocal(t *testing.T) {
	t.Parallel()
	emulator := newLocal(t)
	checkLocal(t, projections, emulator.projection)
}

// projections are all evaluated for the fixture.
var projections = []group{
	{"paths keep their structure", []row{
		{expression: "a", want: "a: 'x'"},
		{expression: "a, n", want: "a: 'x', n: 5"},
		{expression: "#a, n", want: "a: 'x', n: 5"},
		{expression: "m.c", want: "m: {c: 'c'}"},
		{expression: "m.b", want: "m: {b: [1 {c: 'c', d: 'd'} 3]}"},
		{expression: "m.b[0]", want: "m: {b: [1]}"},
		{expression: "m.b[1].c", want: "m: {b: [{c: 'c'}]}"},
		{expression: "m.b[1].c, m.b[1].d", want: "m: {b: [{c: 'c', d: 'd'}]}"},
		{expression: "m.b[2], m.b[1].c, m.c", want: "m: {b: [{c: 'c'} 3], c: 'c'}"},
		{expression: "#m.c", want: "m: {c: 'c'}"},
		{expression: "#m.b[1]", want: "m: {b: [{c: 'c', d: 'd'}]}"},
		{expression: "l[1]", want: "l: [1]"},
		{expression: "pk", want: "pk: 'k'"},
		{expression: "a, m.c, l[0]", want: "a: 'x', l: [0], m: {c: 'c'}"},
		{expression: " a ,\tn\n", want: "a: 'x', n: 5"},
		{expression: "a,n", want: "a: 'x', n: 5"},
		{expression: "#dot", want: ""},
	}},
	{"elements of lists move together and keep their order", []row{
		{expression: "l[3], l[1]", want: "l: [1 3]"},
		{expression: "l[0], l[9]", want: "l: [0]"},
		{expression: "m.b[2], m.b[0]", want: "m: {b: [1 3]}"},
		{expression: "m.b[1].zz, m.b[0]", want: "m: {b: [1]}"},
		{expression: "m.b[2], m.b[1].d", want: "m: {b: [{d: 'd'} 3]}"},
	}},
	{"what is not there is left out", []row{
		{expression: "zz", want: ""},
		{expression: "zz, a", want: "a: 'x'"},
		{expression: "m.zz", want: ""},
		{expression: "a.b", want: ""},
		{expression: "a[0]", want: ""},
		{expression: "l[9]", want: ""},
		{expression: "m.b[9]", want: ""},
		{expression: "m.b.c", want: ""},
		{expression: "l[3].x", want: ""},
		{expression: "m.b[1].zz", want: ""},
		{expression: "m[0]", want: ""},
		{expression: "l.a", want: ""},
		{expression: "m.zz.yy", want: ""},
	}},
	{"no two paths select one thing", []row{
		{expression: "a, a", want: "Invalid ProjectionExpression: Two document paths overlap with each other; must remove or rewrite one of these paths; path one: [a], path two: [a]"},
		{expression: "a, #a", want: "Invalid ProjectionExpression: Two document paths overlap with each other; must remove or rewrite one of these paths; path one: [a], path two: [a]"},
		{expression: "m, m.c", want: "Invalid ProjectionExpression: Two document paths overlap with each other; must remove or rewrite one of these paths; path one: [m], path two: [m, c]"},
		{expression: "m.c, m", want: "Invalid ProjectionExpression: Two document paths overlap with each other; must remove or rewrite one of these paths; path one: [m, c], path two: [m]"},
		{expression: "m.b[0], m.b", want: "Invalid ProjectionExpression: Two document paths overlap with each other; must remove or rewrite one of these paths; path one: [m, b, [0]], path two: [m, b]"},
		{expression: "l[0], l[0]", want: "Invalid ProjectionExpression: Two document paths overlap with each other; must remove or rewrite one of these paths; path one: [l, [0]], path two: [l, [0]]"},
		{expression: "m[0], m.b", want: "Invalid ProjectionExpression: Two document paths conflict with each other; must remove or rewrite one of these paths; path one: [m, [0]], path two: [m, b]"},
		{expression: "m.b, m[0]", want: "Invalid ProjectionExpression: Two document paths conflict with each other; must remove or rewrite one of these paths; path one: [m, b], path two: [m, [0]]"},
		{expression: "a.b, a[0]", want: "Invalid ProjectionExpression: Two document paths conflict with each other; must remove or rewrite one of these paths; path one: [a, b], path two: [a, [0]]"},
		{expression: "m.c, m.b", want: "m: {b: [1 {c: 'c', d: 'd'} 3], c: 'c'}"},
		{expression: "#zz, a, a", want: "Invalid ProjectionExpression: Two document paths overlap with each other; must remove or rewrite one of these paths; path one: [a], path two: [a]"},
		{expression: "a, a, #zz", want: "Invalid ProjectionExpression: An expression attribute name used in the document path is not defined; attribute name: #zz"},
	}},
	{"a fault is told", []row{
		{expression: "", want: "Invalid ProjectionExpression: The expression can not be empty;"},
		{expression: " ", want: `Invalid ProjectionExpression: Syntax error; token: "<EOF>", near: " "`},
		{expression: "a,", want: `Invalid ProjectionExpression: Syntax error; token: "<EOF>", near: ","`},
		{expression: ",a", want: `Invalid ProjectionExpression: Syntax error; token: ",", near: ",a"`},
		{expression: "a b", want: `Invalid ProjectionExpression: Syntax error; token: "b", near: "a b"`},
		{expression: "a..b", want: `Invalid ProjectionExpression: Syntax error; token: ".", near: "..b"`},
		{expression: "a.", want: `Invalid ProjectionExpression: Syntax error; token: "<EOF>", near: "."`},
		{expression: "a[0", want: `Invalid ProjectionExpression: Syntax error; token: "<EOF>", near: "0"`},
		{expression: "a[-1]", want: `Invalid ProjectionExpression: Syntax error; token: "-", near: "[-1"`},
		{expression: "a[0]b", want: `Invalid ProjectionExpression: Syntax error; token: "b", near: "]b"`},
		{expression: "(a)", want: `Invalid ProjectionExpression: Syntax error; token: "(", near: "(a"`},
		{expression: "size(a)", want: `Invalid ProjectionExpression: Syntax error; token: "(", near: "size(a"`},
		{expression: ":s", want: `Invalid ProjectionExpression: Syntax error; token: ":s", near: ":s"`},
		{expression: "a;b", want: `Invalid ProjectionExpression: Syntax error; token: ";", near: "a;b"`},
		{expression: "a AND b", want: `Invalid ProjectionExpression: Syntax error; token: "AND", near: "a AND b"`},
		{expression: "SET a", want: `Invalid ProjectionExpression: Syntax error; token: "SET", near: "SET a"`},
		{expression: "a = :s", want: `Invalid ProjectionExpression: Syntax error; token: "=", near: "a = :s"`},
		{expression: "name", want: "Invalid ProjectionExpression: Attribute name is a reserved keyword; reserved keyword: name"},
		{expression: "a.name", want: "Invalid ProjectionExpression: Attribute name is a reserved keyword; reserved keyword: name"},
		{expression: "size", want: "Invalid ProjectionExpression: Attribute name is a reserved keyword; reserved keyword: size", local: nothing},
		{expression: "#zz", want: "Invalid ProjectionExpression: An expression attribute name used in the document path is not defined; attribute name: #zz"},
		{expression: "a.#zz", want: "Invalid ProjectionExpression: An expression attribute name used in the document path is not defined; attribute name: #zz"},
		{expression: "a[2147483648]", want: "Invalid ProjectionExpression: List index is not within the allowable range; index: [2147483648]"},
		{expression: "a.b.b.b.b.b.b.b.b.b.b.b.b.b.b.b.b.b.b.b.b.b.b.b.b.b.b.b.b.b.b.b.b", want: "Invalid ProjectionExpression: The document path has too many nesting levels; nesting levels: 33"},
		{expression: "a.b.b.b.b.b.b.b.b.b.b.b.b.b.b.b.b.b.b.b.b.b.b.b.b.b.b.b.b.b.b.b", want: ""},
		{expression: "a" + strings.Repeat(" ", 4096), want: "Invalid ProjectionExpression: Expression size has exceeded the maximum allowed size;"},
		{expression: "a.:s", want: "Invalid ProjectionExpression: An expression attribute name used in the document path is not defined; attribute name: :s"},
		{expression: "#zz, name", want: "Invalid ProjectionExpression: Attribute name is a reserved keyword; reserved keyword: name"},
		{expression: "1", want: `Invalid ProjectionExpression: Syntax error; token: "1", near: "1"`},
		{expression: "é", want: `Invalid ProjectionExpression: Syntax error; token: "é", near: "é"`},
	}},
}
