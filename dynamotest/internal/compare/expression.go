package compare

import (
	"strconv"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// expression makes the expressions of one request and collects their placeholders.
type expression struct {
	*generator
	table  *table
	names  map[string]string
	values item
	// removes is set after an update with only REMOVE and DELETE.
	removes bool
}

func (g *generator) expression(t *table) *expression {
	return &expression{generator: g, table: t}
}

// reserved are attribute names that an expression must not contain: reserved words, and texts that
// the grammar does not accept as names.
var reserved = map[string]bool{"size": true, "odd-name": true, "é": true, "hash": true, "range": true}

// name returns the attribute name, or a placeholder for it.
func (e *expression) name(name string) string {
	raw := 600
	if reserved[name] {
		raw = 5
	}
	if e.chance(raw) {
		return name
	}
	placeholder := "#" + strings.Map(func(r rune) rune {
		if r == '-' || r > 127 {
			return '_'
		}
		return r
	}, name)
	if e.names == nil {
		e.names = map[string]string{}
	}
	e.names[placeholder] = name
	return placeholder
}

// bind returns a placeholder for the value.
func (e *expression) bind(v types.AttributeValue) string {
	if e.values == nil {
		e.values = item{}
	}
	placeholder := ":v" + strconv.Itoa(len(e.values))
	e.values[placeholder] = v
	return placeholder
}

// bound returns a placeholder for a random value of the type.
func (e *expression) bound(kind string) string {
	if e.chance(25) {
		kind = pick(e.dice, kinds...)
	}
	return e.bind(e.value(kind, 2))
}

// path returns a path to a value that usually has the type.
func (e *expression) path(kind string) string {
	if e.chance(30) {
		kind = pick(e.dice, kinds...)
	}
	if e.chance(25) {
		return e.name(pick(e.dice, e.table.keys()...).name)
	}
	return e.below(pick(e.dice, 0, 0, 0, 1, 1, 2), kind)
}

// below returns a path through that many maps and lists.
func (e *expression) below(levels int, kind string) string {
	if levels > 0 {
		for i, k := range elementKinds {
			if k == kind && e.chance(400) {
				return e.below(levels-1, "L") + "[" + strconv.Itoa(i+len(elementKinds)*e.IntN(2)) + "]"
			}
		}
		return e.below(levels-1, "M") + "." + e.name(pick(e.dice, namesOf(kind)...))
	}
	return e.name(pick(e.dice, namesOf(kind)...))
}

// operand returns a path to a value of the type, or such a value.
func (e *expression) operand(kind string) string {
	switch {
	case e.chance(500):
		return e.bound(kind)
	case kind == "N" && e.chance(200):
		return e.size()
	}
	return e.path(kind)
}

func (e *expression) size() string {
	return "size(" + e.path(pick(e.dice, "S", "B", "L", "M", "SS", "NS", "BS")) + ")"
}

var comparators = []string{"=", "<>", "<", "<=", ">", ">="}

// condition returns a condition with at most that many levels of AND, OR and NOT.
func (e *expression) condition(levels int) string {
	if levels > 0 {
		switch weighted(e.dice, 15, 15, 10, 6, 54) {
		case 0:
			return e.condition(levels-1) + e.keyword(" AND ") + e.condition(levels-1)
		case 1:
			return e.condition(levels-1) + e.keyword(" OR ") + e.condition(levels-1)
		case 2:
			return e.keyword("NOT ") + e.condition(levels-1)
		case 3:
			return "(" + e.condition(levels-1) + ")"
		}
	}
	ordered := pick(e.dice, "S", "S", "N", "N", "B")
	switch weighted(e.dice, 30, 8, 8, 16, 10, 6, 6, 8, 8) {
	case 0:
		kind := ordered
		if e.chance(300) {
			kind = pick(e.dice, kinds...)
		}
		comparator := pick(e.dice, comparators...)
		if kind != "S" && kind != "N" && kind != "B" && !e.chance(100) {
			comparator = pick(e.dice, "=", "<>")
		}
		return e.path(kind) + " " + comparator + " " + e.operand(kind)
	case 1:
		return e.operand(ordered) + e.keyword(" BETWEEN ") + e.ascending(ordered)
	case 2:
		list := e.operand(ordered)
		for range e.IntN(3) {
			list += ", " + e.operand(ordered)
		}
		return e.path(ordered) + e.keyword(" IN ") + "(" + list + ")"
	case 3:
		return "attribute_exists(" + e.path(pick(e.dice, kinds...)) + ")"
	case 4:
		return "attribute_not_exists(" + e.path(pick(e.dice, kinds...)) + ")"
	case 5:
		name := &types.AttributeValueMemberS{Value: pick(e.dice, kinds...)}
		if e.chance(20) {
			name.Value = pick(e.dice, "s", "STRING", "")
		}
		return "attribute_type(" + e.path(pick(e.dice, kinds...)) + ", " + e.bind(name) + ")"
	case 6:
		kind := pick(e.dice, "S", "S", "B")
		return "begins_with(" + e.path(kind) + ", " + e.operand(kind) + ")"
	case 7:
		in := pick(e.dice, "S", "L", "SS", "NS", "BS", "B")
		member := map[string]string{"S": "S", "L": pick(e.dice, elementKinds...), "SS": "S", "NS": "N", "BS": "B", "B": "B"}[in]
		return "contains(" + e.path(in) + ", " + e.operand(member) + ")"
	}
	return e.size() + " " + pick(e.dice, comparators...) + " " + e.bind(&types.AttributeValueMemberN{Value: strconv.Itoa(e.IntN(6))})
}

// ascending returns the bounds of a BETWEEN, mostly in the order that DynamoDB requires.
func (e *expression) ascending(kind string) string {
	var low, high string
	switch {
	case e.chance(200):
		low, high = e.operand(kind), e.operand(kind)
	case kind == "N":
		n := e.IntN(4) - 1
		low = e.bind(&types.AttributeValueMemberN{Value: strconv.Itoa(n)})
		high = e.bind(&types.AttributeValueMemberN{Value: strconv.Itoa(n + e.IntN(4))})
	case kind == "S":
		low = e.bind(&types.AttributeValueMemberS{Value: pick(e.dice, "a", "aa", "ab")})
		high = e.bind(&types.AttributeValueMemberS{Value: pick(e.dice, "ab", "b", "é")})
	default:
		low = e.bind(&types.AttributeValueMemberB{Value: []byte(pick(e.dice, "\x00", "\x01"))})
		high = e.bind(&types.AttributeValueMemberB{Value: []byte(pick(e.dice, "\x01", "a", "\xff"))})
	}
	return low + e.keyword(" AND ") + high
}

// keyword returns a keyword in upper or lower case. DynamoDB accepts both.
func (e *expression) keyword(k string) string {
	if e.chance(100) {
		return strings.ToLower(k)
	}
	return k
}

// projection returns a list of paths.
func (e *expression) projection() string {
	var paths []string
	for _, name := range some(e.dice, 1+e.IntN(4), attributeNames) {
		path := e.name(name)
		switch usualKind(name) {
		case "M":
			if e.chance(600) {
				path += "." + e.name(pick(e.dice, attributeNames...))
			}
		case "L":
			if e.chance(600) {
				path += "[" + strconv.Itoa(e.IntN(4)) + "]"
			}
		}
		paths = append(paths, path)
	}
	if e.chance(500) {
		paths = append(paths, e.name(pick(e.dice, e.table.keys()...).name))
	}
	if e.chance(30) {
		paths = append(paths, e.path("N")) // may overlap with another
	}
	return strings.Join(paths, ", ")
}

// keyCondition returns a condition for the key of a table or an index.
func (e *expression) keyCondition(keys []attribute) string {
	equal := e.name(keys[0].name) + " = " + e.keyOperand(keys[0])
	if len(keys) == 1 || e.chance(300) {
		switch weighted(e.dice, 97, 2, 1) {
		case 1:
			return equal + " AND " + e.condition(0)
		case 2:
			return strings.Replace(equal, "=", pick(e.dice, comparators...), 1)
		}
		return equal
	}
	sort := e.name(keys[1].name)
	switch weighted(e.dice, 50, 15, 15, 2) {
	case 0:
		sort += " " + pick(e.dice, "=", "<", "<=", ">", ">=") + " " + e.keyOperand(keys[1])
	case 1:
		sort += e.keyword(" BETWEEN ") + e.ascending(string(keys[1].kind))
	case 2:
		if keys[1].kind == types.ScalarAttributeTypeN && !e.chance(100) {
			sort += " >= " + e.keyOperand(keys[1])
			break
		}
		sort = "begins_with(" + sort + ", " + e.keyOperand(keys[1]) + ")"
	case 3:
		sort += pick(e.dice, " <> ", " IN ") + e.keyOperand(keys[1])
	}
	if e.chance(100) {
		sort = "(" + sort + ")"
	}
	switch weighted(e.dice, 834, 8, 8, 150) {
	case 1:
		return sort
	case 2:
		return equal + " OR " + sort
	case 3:
		return sort + e.keyword(" AND ") + equal
	}
	return equal + e.keyword(" AND ") + sort
}

func (e *expression) keyOperand(a attribute) string {
	if e.chance(15) {
		return e.bound(pick(e.dice, kinds...))
	}
	if e.chance(4) {
		return e.path(string(a.kind))
	}
	n := 3
	if a.name != e.table.hash.name || e.table.sort.name == "" {
		n = 6
	}
	return e.bind(e.keyValue(a, n))
}

// finish returns the text as a parameter. It rarely makes the text or the placeholders wrong.
func (e *expression) finish(text string) *string {
	switch weighted(e.dice, 970, 8, 2, 4, 4, 3, 3, 2, 2, 1, 1) {
	case 1:
		text = e.garble(text)
	case 2:
		text = ""
	case 3:
		_ = e.bound("S") // no expression uses it
	case 4:
		if e.names == nil {
			e.names = map[string]string{}
		}
		e.names["#unused"] = "s1"
	case 5:
		delete(e.values, ":v0")
	case 6:
		for _, name := range attributeNames {
			delete(e.names, "#"+name)
		}
	case 7:
		e.values = item{}
	case 8:
		e.names = map[string]string{}
	case 9:
		if e.names == nil {
			e.names = map[string]string{}
		}
		e.names[pick(e.dice, "s1", "#", "#a b", "")] = pick(e.dice, "s1", "")
	case 10:
		if e.values == nil {
			e.values = item{}
		}
		e.values[pick(e.dice, "s1", ":", ":a b", "")] = e.value("S", 0)
	}
	return aws.String(text)
}

// garble makes an expression that the grammar rarely allows.
func (e *expression) garble(text string) string {
	words := strings.Fields(text)
	i := e.IntN(len(words))
	switch e.IntN(5) {
	case 0:
		words = append(words[:i:i], words[i+1:]...)
	case 1:
		words = append(words[:i+1:i+1], words[i:]...)
	case 2:
		words[i] = pick(e.dice, "(", ")", "AND", ",", "foo(s1)", "size(s1, s2)", "s1.", "l1[", "l1[-1]", "l1[x]", "1", "'a'", "$", "SET", "==", "if_not_exists(s1, s2)")
	case 3:
		return "(" + text + ")"
	case 4:
		return strings.ReplaceAll(strings.ReplaceAll(text, "  ", " "), " ", pick(e.dice, "\n", "\t", "   ", ""))
	}
	return strings.Join(words, " ")
}
