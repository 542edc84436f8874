package expression_test

import (
	"bytes"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go"
	"github.com/stretchr/testify/assert"

	"github.com/millrace-dev/millrace/dynamotest/internal/value"
)

func s(v string) types.AttributeValue { return &types.AttributeValueMemberS{Value: v} }
func n(v string) types.AttributeValue { return &types.AttributeValueMemberN{Value: v} }
func b(v string) types.AttributeValue { return &types.AttributeValueMemberB{Value: []byte(v)} }
func l(v ...types.AttributeValue) types.AttributeValue {
	return &types.AttributeValueMemberL{Value: v}
}
func m(v value.Item) types.AttributeValue { return &types.AttributeValueMemberM{Value: v} }
func ss(v ...string) types.AttributeValue { return &types.AttributeValueMemberSS{Value: v} }
func ns(v ...string) types.AttributeValue { return &types.AttributeValueMemberNS{Value: v} }
func bs(v ...[]byte) types.AttributeValue { return &types.AttributeValueMemberBS{Value: v} }
func boolean(v bool) types.AttributeValue { return &types.AttributeValueMemberBOOL{Value: v} }
func null() types.AttributeValue          { return &types.AttributeValueMemberNULL{Value: true} }

// fixture is the item for the tables of expressions.
var fixture = value.Item{
	"pk":      s("k"),
	"a":       s("x"),
	"text":    s("é€😀"),
	"nothing": s(""),
	"n":       n("5"),
	"bin":     b("abc"),
	"yes":     boolean(true),
	"nul":     null(),
	"l":       l(n("0"), n("1"), n("2"), n("3")),
	"m": m(value.Item{
		"b": l(n("1"), m(value.Item{"c": s("c"), "d": s("d")}), n("3")),
		"c": s("c"),
	}),
	"ss": ss("a", "b"),
	"ns": ns("1", "2"),
	"bs": bs([]byte("a"), []byte("b")),
}

// values are the placeholders that the tables may use. A request gets those that its expression
// contains.
var values = value.Item{
	":s": s("x"), ":lo": s("a"), ":hi": s("b"), ":e": s(""), ":t": s("S"), ":k": s("k"),
	":n": n("5"), ":one": n("1"), ":three": n("3"), ":four": n("4"),
	":big": n("9.9999999999999999999999999999999999999E+125"), ":tiny": n("1E-130"),
	":long": n("99999999999999999999999999999999999999"),
	":b":    b("a"), ":eb": b(""), ":yes": boolean(true), ":nul": null(),
	":l": l(n("8")), ":m": m(value.Item{"c": s("c")}),
	":ss": ss("a", "z"), ":all": ss("a", "b"), ":ns": ns("1", "3"), ":bs": bs([]byte("a"), []byte("z")),
}

var names = map[string]string{"#a": "a", "#name": "name", "#dot": "m.b", "#m": "m", "#p": "pk"}

var reference = regexp.MustCompile(`[#:][A-Za-z0-9_]+`)

// placeholders returns the names and values that an expression contains; nil for none.
func placeholders(source string) (map[string]string, value.Item) {
	var usedNames map[string]string
	var usedValues value.Item
	for _, ref := range reference.FindAllString(source, -1) {
		if name, ok := names[ref]; ok {
			if usedNames == nil {
				usedNames = map[string]string{}
			}
			usedNames[ref] = name
		}
		if v, ok := values[ref]; ok {
			if usedValues == nil {
				usedValues = value.Item{}
			}
			usedValues[ref] = v
		}
	}
	return usedNames, usedValues
}

// group is a table of expressions for one rule.
type group struct {
	shows string
	rows  []row
}

// row is an expression and its result. local is the result of DynamoDB Local if it differs.
type row struct {
	expression, want, local string
}

// nothing is an empty result of DynamoDB Local, where the expected one is not empty.
const nothing = "nothing"

// evaluator returns the result of an expression.
type evaluator func(source string) string

func check(t *testing.T, groups []group, evaluate evaluator) {
	t.Helper()
	for _, g := range groups {
		t.Run(g.shows, func(t *testing.T) {
			for _, r := range g.rows {
				assert.Equal(t, r.want, evaluate(r.expression), "of %s", r.expression)
			}
		})
	}
}

// checkLocal is check for DynamoDB Local.
func checkLocal(t *testing.T, groups []group, evaluate evaluator) {
	t.Helper()
	for _, g := range groups {
		t.Run(g.shows, func(t *testing.T) {
			for _, r := range g.rows {
				want := r.want
				switch r.local {
				case "":
				case nothing:
					want = ""
				default:
					want = r.local
				}
				assert.Equal(t, want, evaluate(r.expression), "of %s", r.expression)
			}
		})
	}
}

// message returns the message of an API error.
func message(err error) string {
	var api smithy.APIError
	if errors.As(err, &api) && api.ErrorCode() == "ValidationException" {
		return api.ErrorMessage()
	}
	return err.Error()
}

// show returns a value in short form, with maps and sets in order.
func show(v types.AttributeValue) string {
	switch v := v.(type) {
	case *types.AttributeValueMemberS:
		return "'" + v.Value + "'"
	case *types.AttributeValueMemberN:
		return v.Value
	case *types.AttributeValueMemberB:
		return "0x" + hex.EncodeToString(v.Value)
	case *types.AttributeValueMemberBOOL:
		return fmt.Sprint(v.Value)
	case *types.AttributeValueMemberNULL:
		return "null"
	case *types.AttributeValueMemberL:
		parts := make([]string, len(v.Value))
		for i, e := range v.Value {
			parts[i] = show(e)
		}
		return "[" + strings.Join(parts, " ") + "]"
	case *types.AttributeValueMemberM:
		return "{" + showItem(v.Value) + "}"
	case *types.AttributeValueMemberSS:
		return "<" + strings.Join(slices.Sorted(slices.Values(v.Value)), " ") + ">"
	case *types.AttributeValueMemberNS:
		return "<" + strings.Join(slices.Sorted(slices.Values(v.Value)), " ") + ">"
	case *types.AttributeValueMemberBS:
		return fmt.Sprintf("<%q>", slices.SortedFunc(slices.Values(v.Value), bytes.Compare))
	default:
		return nothing
	}
}

func showItem(item value.Item) string {
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(item)) {
		parts = append(parts, name+": "+show(item[name]))
	}
	return strings.Join(parts, ", ")
}

// showChanges returns the differences between an item and the fixture.
func showChanges(item value.Item) string {
	changed := value.Item{}
	for name, v := range item {
		if show(v) != show(fixture[name]) {
			changed[name] = v
		}
	}
	for name := range fixture {
		if _, ok := item[name]; !ok {
			changed[name] = nil
		}
	}
	return showItem(changed)
}
