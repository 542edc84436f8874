package compare

import (
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

type item = map[string]types.AttributeValue

// attributeNames are the names of attributes beside the keys. Each name mostly has the same type,
// also inside of maps, so that expressions usually find values of the right type.
var attributeNames = []string{"s1", "s2", "n1", "n2", "b1", "t1", "z1", "l1", "m1", "ss", "ns", "bs", "odd-name", "size", "é"}

func usualKind(name string) string {
	switch name {
	case "s1", "s2", "odd-name":
		return "S"
	case "n1", "n2", "size":
		return "N"
	case "b1":
		return "B"
	case "t1":
		return "BOOL"
	case "z1":
		return "NULL"
	case "l1":
		return "L"
	case "m1", "é":
		return "M"
	}
	return strings.ToUpper(name)
}

// namesOf returns the attribute names that usually have the type.
func namesOf(kind string) []string {
	var out []string
	for _, name := range attributeNames {
		if usualKind(name) == kind {
			out = append(out, name)
		}
	}
	return out
}

// elementKinds are the usual types of the first elements of a list.
var elementKinds = []string{"N", "S", "M", "L"}

var kinds = []string{"S", "N", "B", "BOOL", "NULL", "L", "M", "SS", "NS", "BS"}

var (
	texts   = []string{"a", "b", "ab", "abc", "10", "é", "日本", "\U0001F600", "\uFFFD", "Z", "a b", "a\x00"}
	numbers = []string{"0", "1", "2", "3", "-1", "10", "1.5", "100", "-2.25"}
	// oddNumbers are valid, but at a limit or in another notation than the returned one.
	oddNumbers = []string{
		"-0", "0.0", "007", "1.0", "1e2", "1E+2", "100e-2", "+5", ".5", "5.", "-1.50",
		"12345678901234567890123456789012345678", "0.12345678901234567890123456789012345678", "-99999999999999999999999999999999999999",
		"1234567890.1234567890123456789012345678", "100000000000000000000000000000000000000000", "0.000000001",
		"9.9999999999999999999999999999999999999E+125", "-9.9999999999999999999999999999999999999E+125",
		"1E-130", "-1E-130", "1E125", "1e20", "1e21", "1e-7", "0E10", "1.000000000000000000000000000000000000000000000",
	}
	wrongNumbers = []string{
		"", "abc", "1E126", "1e-131", "123456789012345678901234567890123456789", "1.23456789012345678901234567890123456789",
		"NaN", "Infinity", "0x10", " 1", "1 ", "1_000", "--1", "1e", "e1", "1e999999999999", ".", "1,5",
	}
	binaries = []string{"\x00", "\x01", "\x01\x02", "\x7f", "\x80", "\xff", "a", "ab", "b"}
)

func (g *generator) text() string {
	switch {
	case g.chance(40):
		return ""
	case g.big && g.chance(300):
		return strings.Repeat(pick(g.dice, "x", "é"), 1000*(1+g.IntN(60)))
	}
	return pick(g.dice, texts...)
}

func (g *generator) number() string {
	switch {
	case g.chance(80):
		return pick(g.dice, oddNumbers...)
	case g.chance(3):
		return pick(g.dice, wrongNumbers...)
	}
	return pick(g.dice, numbers...)
}

// value returns a value of the type, with at most that many levels of maps and lists.
func (g *generator) value(kind string, levels int) types.AttributeValue {
	switch kind {
	case "S":
		return &types.AttributeValueMemberS{Value: g.text()}
	case "N":
		return &types.AttributeValueMemberN{Value: g.number()}
	case "B":
		if g.chance(30) {
			return &types.AttributeValueMemberB{Value: []byte{}}
		}
		return &types.AttributeValueMemberB{Value: []byte(pick(g.dice, binaries...))}
	case "BOOL":
		return &types.AttributeValueMemberBOOL{Value: g.chance(500)}
	case "NULL":
		return &types.AttributeValueMemberNULL{Value: !g.chance(5)}
	case "L":
		return &types.AttributeValueMemberL{Value: g.list(levels - 1)}
	case "M":
		if g.chance(2) {
			return g.deep(29 + g.IntN(5))
		}
		return &types.AttributeValueMemberM{Value: g.attributes(g.IntN(5), levels-1)}
	case "SS":
		return &types.AttributeValueMemberSS{Value: g.members(texts, "")}
	case "NS":
		return &types.AttributeValueMemberNS{Value: g.members(pick(g.dice, numbers, numbers, oddNumbers), pick(g.dice, wrongNumbers...))}
	}
	set := &types.AttributeValueMemberBS{Value: [][]byte{}}
	for _, b := range g.members(binaries, "") {
		set.Value = append(set.Value, []byte(b))
	}
	return set
}

// members returns the members of a set, rarely none, a duplicate or an invalid one.
func (g *generator) members(from []string, wrong string) []string {
	out := some(g.dice, 1+g.IntN(4), from)
	switch weighted(g.dice, 985, 5, 5, 5) {
	case 1:
		return []string{}
	case 2:
		return append(out, out[0])
	case 3:
		return append(out, wrong)
	}
	return out
}

func (g *generator) list(levels int) []types.AttributeValue {
	out := []types.AttributeValue{}
	for i := range g.IntN(6) {
		kind := elementKinds[i%len(elementKinds)]
		if g.chance(150) {
			kind = pick(g.dice, kinds...)
		}
		if levels <= 0 && (kind == "L" || kind == "M") {
			kind = "S"
		}
		out = append(out, g.value(kind, levels))
	}
	return out
}

func (g *generator) attributes(n, levels int) item {
	out := item{}
	for _, name := range some(g.dice, n, attributeNames) {
		out[name] = g.value(g.kindOf(name, levels), levels)
	}
	return out
}

func (g *generator) kindOf(name string, levels int) string {
	kind := usualKind(name)
	if g.chance(40) {
		kind = pick(g.dice, kinds...)
	}
	if levels <= 0 && (kind == "L" || kind == "M") {
		return "NULL"
	}
	return kind
}

// deep returns a value with that many levels. DynamoDB allows 32.
func (g *generator) deep(levels int) types.AttributeValue {
	var v types.AttributeValue = &types.AttributeValueMemberS{Value: "end"}
	for range levels {
		if g.chance(500) {
			v = &types.AttributeValueMemberL{Value: []types.AttributeValue{v}}
		} else {
			v = &types.AttributeValueMemberM{Value: item{"m1": v}}
		}
	}
	return v
}

// keyValue returns one of the few values of a key attribute. A partition key has three. A sort key,
// or a partition key without a sort key, has eight.
func (g *generator) keyValue(a attribute, n int) types.AttributeValue {
	i := g.IntN(n)
	switch a.kind {
	case types.ScalarAttributeTypeN:
		number := numbers[i]
		if g.chance(30) {
			number += pick(g.dice, "e0", "E+0") // the same number
		}
		return &types.AttributeValueMemberN{Value: number}
	case types.ScalarAttributeTypeB:
		return &types.AttributeValueMemberB{Value: []byte(binaries[i])}
	}
	return &types.AttributeValueMemberS{Value: texts[i]}
}

// key returns a key of the table, rarely a wrong one.
func (g *generator) key(t *table) item {
	out := item{}
	if t.sort.name == "" {
		out[t.hash.name] = g.keyValue(t.hash, 8)
	} else {
		out[t.hash.name] = g.keyValue(t.hash, 3)
		out[t.sort.name] = g.keyValue(t.sort, 8)
	}
	if g.chance(12) {
		g.spoil(t, out)
	}
	return out
}

// spoil makes a key wrong.
func (g *generator) spoil(t *table, key item) {
	a := pick(g.dice, t.keys()...)
	switch g.IntN(6) {
	case 0:
		delete(key, a.name)
	case 1:
		key["extra"] = g.value("S", 0)
	case 2:
		key[a.name] = g.value(pick(g.dice, kinds...), 1)
	case 3:
		key[a.name] = &types.AttributeValueMemberS{Value: ""}
	// A partition key is limited to 2,048 bytes, a sort key to 1,024.
	case 4:
		key[a.name] = &types.AttributeValueMemberS{Value: strings.Repeat("k", pick(g.dice, 1024, 1025, 2048, 2049))}
	case 5:
		key[a.name] = &types.AttributeValueMemberN{Value: pick(g.dice, append(oddNumbers, wrongNumbers...)...)}
	}
}

// item returns an item for the table.
func (g *generator) item(t *table) item {
	out := g.attributes(2+g.IntN(7), 3)
	for name, v := range g.key(t) {
		out[name] = v
	}
	// With random attributes alone, indexes would have few items, and few items with the same key.
	for _, x := range t.indexes {
		for _, a := range x.keys() {
			if _, set := out[a.name]; !set && g.chance(800) || set && g.chance(300) && !isKey(t, a.name) {
				out[a.name] = g.keyValue(a, 4)
			}
		}
	}
	switch {
	case g.big && g.chance(500):
		out["big"] = &types.AttributeValueMemberS{Value: strings.Repeat("x", 20_000+g.IntN(330_000))}
	case g.big && g.chance(50), g.chance(2):
		return g.fullItem(t)
	}
	return out
}

// fullItem returns an item of almost the largest size, which is 400 KB including names.
func (g *generator) fullItem(t *table) item {
	out := g.key(t)
	size := len("big")
	for name, v := range out {
		size += len(name)
		switch v := v.(type) {
		case *types.AttributeValueMemberS:
			size += len(v.Value)
		case *types.AttributeValueMemberB:
			size += len(v.Value)
		case *types.AttributeValueMemberN:
			size += 2
		}
	}
	out["big"] = &types.AttributeValueMemberS{Value: strings.Repeat("x", max(0, 400<<10-size+pick(g.dice, -1, 0, 1, 2, 10_000)))}
	return out
}

func isKey(t *table, name string) bool { return name == t.hash.name || name == t.sort.name }
