package compare

import (
	"cmp"
	"encoding/hex"
	"fmt"
	"math/big"
	"reflect"
	"regexp"
	"slices"
	"sort"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// A tree is a request or a reply in a form for comparing and printing: maps with string keys,
// slices, and leaves that are strings. It omits fields that are not set, but not fields that are
// set and empty.
type tree = any

// ignored are fields that differ between any two databases, or in which DynamoDB Local differs from
// DynamoDB. These are generated names and times, sizes that DynamoDB updates every six hours,
// temporary statuses, and the consumed capacity. Other tests compare the capacity with DynamoDB's
// published rules.
var ignored = map[string]bool{
	"ResultMetadata": true, "ConsumedCapacity": true, "SizeEstimateRangeGB": true,
	"TableArn": true, "TableId": true, "IndexArn": true,
	"CreationDateTime": true, "LastUpdateToPayPerRequestDateTime": true, "LastIncreaseDateTime": true, "LastDecreaseDateTime": true,
	"TableSizeBytes": true, "IndexSizeBytes": true, "ItemCount": true,
	"TableStatus": true, "IndexStatus": true, "Backfilling": true, "NumberOfDecreasesToday": true,
}

// unordered are fields whose order has no meaning.
var unordered = map[string]bool{
	"AttributeDefinitions": true, "GlobalSecondaryIndexes": true, "LocalSecondaryIndexes": true, "NonKeyAttributes": true,
}

// comparableTree returns the value without the ignored fields.
func comparableTree(v any) tree { return toTree(reflect.ValueOf(v), ignored) }

// textOf returns the whole value as text similar to JSON.
func textOf(v any) string {
	return textOfTree(toTree(reflect.ValueOf(v), map[string]bool{"ResultMetadata": true}))
}

func toTree(v reflect.Value, without map[string]bool) tree {
	if !v.IsValid() {
		return nil
	}
	if value, ok := v.Interface().(types.AttributeValue); ok {
		return canonical(value)
	}
	switch v.Kind() {
	case reflect.Pointer, reflect.Interface:
		if v.IsNil() {
			return nil
		}
		return toTree(v.Elem(), without)
	case reflect.Struct:
		if t, ok := v.Interface().(time.Time); ok {
			return t.String()
		}
		out := map[string]tree{}
		for i := range v.NumField() {
			field := v.Type().Field(i)
			if !field.IsExported() || without[field.Name] || v.Field(i).IsZero() {
				continue
			}
			sub := toTree(v.Field(i), without)
			if list, ok := sub.([]tree); ok && unordered[field.Name] {
				sortTrees(list)
			}
			out[field.Name] = sub
		}
		return out
	case reflect.Map:
		out := map[string]tree{}
		for _, key := range v.MapKeys() {
			out[key.String()] = toTree(v.MapIndex(key), without)
		}
		return out
	case reflect.Slice:
		out := make([]tree, v.Len())
		for i := range out {
			out[i] = toTree(v.Index(i), without)
		}
		return out
	case reflect.String:
		return strconv.Quote(v.String())
	}
	return fmt.Sprint(v.Interface())
}

// sortTrees sorts by text. Equal numbers in different notations count as equal.
func sortTrees(list []tree) {
	keys := make(map[int]string, len(list))
	order := make([]int, len(list))
	for i, t := range list {
		order[i] = i
		keys[i] = numerals.ReplaceAllStringFunc(textOfTree(t), func(n string) string {
			if r, ok := new(big.Rat).SetString(n); ok {
				return r.RatString()
			}
			return n
		})
	}
	sort.SliceStable(order, func(i, j int) bool { return keys[order[i]] < keys[order[j]] })
	sorted := make([]tree, len(list))
	for i, from := range order {
		sorted[i] = list[from]
	}
	copy(list, sorted)
}

var numerals = regexp.MustCompile(`[-+]?[.0-9][.0-9]*([eE][-+]?[0-9]{1,3}\b)?`)

// textOfTree returns the tree as one line.
func textOfTree(t tree) string {
	switch t := t.(type) {
	case map[string]tree:
		fields := make([]string, 0, len(t))
		for name, v := range t {
			fields = append(fields, name+": "+textOfTree(v))
		}
		sort.Strings(fields)
		return "{" + strings.Join(fields, ", ") + "}"
	case []tree:
		elements := make([]string, len(t))
		for i, v := range t {
			elements[i] = textOfTree(v)
		}
		return "[" + strings.Join(elements, ", ") + "]"
	case nil:
		return "null"
	}
	return fmt.Sprint(t)
}

// canonical is the value as text, the members of its sets in order. Of a long
// string only the start and the length are kept, which is all that the generator varies.
func canonical(v types.AttributeValue) string {
	switch v := v.(type) {
	case *types.AttributeValueMemberS:
		return "S:" + quoted(v.Value)
	case *types.AttributeValueMemberN:
		return "N:" + v.Value
	case *types.AttributeValueMemberB:
		return "B:" + binary(v.Value)
	case *types.AttributeValueMemberBOOL:
		return strconv.FormatBool(v.Value)
	case *types.AttributeValueMemberNULL:
		return "NULL:" + strconv.FormatBool(v.Value)
	case *types.AttributeValueMemberL:
		elements := make([]string, len(v.Value))
		for i, e := range v.Value {
			elements[i] = canonical(e)
		}
		return "[" + strings.Join(elements, " ") + "]"
	case *types.AttributeValueMemberM:
		fields := make([]string, 0, len(v.Value))
		for name, e := range v.Value {
			fields = append(fields, strconv.Quote(name)+":"+canonical(e))
		}
		sort.Strings(fields)
		return "{" + strings.Join(fields, " ") + "}"
	case *types.AttributeValueMemberSS:
		members := make([]string, len(v.Value))
		for i, m := range v.Value {
			members[i] = quoted(m)
		}
		return set("SS", members)
	case *types.AttributeValueMemberNS:
		members := append([]string(nil), v.Value...)
		// By value, so that a number has the same place in every notation.
		slices.SortFunc(members, func(a, b string) int { return cmp.Or(compareNumbers(a, b), strings.Compare(a, b)) })
		return "NS(" + strings.Join(members, " ") + ")"
	case *types.AttributeValueMemberBS:
		members := make([]string, len(v.Value))
		for i, m := range v.Value {
			members[i] = binary(m)
		}
		return set("BS", members)
	}
	return fmt.Sprintf("%T", v)
}

// compareNumbers compares the values of two numbers. It returns 0 if one of them is not a number.
func compareNumbers(a, b string) int {
	x, ok := new(big.Rat).SetString(a)
	y, also := new(big.Rat).SetString(b)
	if !ok || !also {
		return 0
	}
	return x.Cmp(y)
}

func set(kind string, members []string) string {
	sort.Strings(members)
	return kind + "(" + strings.Join(members, " ") + ")"
}

func binary(b []byte) string {
	if len(b) > 100 {
		return hex.EncodeToString(b[:10]) + "...(" + strconv.Itoa(len(b)) + " bytes)"
	}
	return hex.EncodeToString(b)
}

func quoted(s string) string {
	if len(s) > 200 {
		return strconv.Quote(s[:20]) + "...(" + strconv.Itoa(len(s)) + " bytes)"
	}
	return strconv.Quote(s)
}
