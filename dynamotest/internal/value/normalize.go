package value

import (
	"bytes"
	"maps"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/millrace-dev/millrace/dynamotest/internal/apierror"
	"github.com/millrace-dev/millrace/dynamotest/internal/number"
)

const (
	// MaxNameLength is the largest length of the name of an attribute in bytes. Keys are limited
	// more.
	MaxNameLength = 65535
	// MaxNesting is the largest number of nested lists and maps, including the item.
	MaxNesting = 32
)

// Normalize checks a received value and returns it in stored form: numbers in full, sets in order.
// Errors are ValidationExceptions. It does not change v, but the result may share parts with it.
func Normalize(v types.AttributeValue) (types.AttributeValue, error) { return normalize(v, 1) }

// NormalizeItem normalizes the values of an item, and checks the names.
func NormalizeItem(item Item) (Item, error) {
	normal, _, err := normalizeMap(item, 1)
	return normal, err
}

// normalize has the number of maps and lists around the value as depth, including the item.
func normalize(v types.AttributeValue, depth int) (types.AttributeValue, error) {
	switch v := v.(type) {
	case nil:
		return nil, apierror.Validation("Supplied AttributeValue is empty, must contain exactly one of the supported datatypes")
	case *types.AttributeValueMemberN:
		return normalizeNumber(v)
	case *types.AttributeValueMemberNULL:
		if !v.Value {
			return nil, apierror.Validation("One or more parameter values were invalid: Null attribute value types must have the value of true")
		}
	case *types.AttributeValueMemberL:
		return normalizeList(v, depth+1)
	case *types.AttributeValueMemberM:
		return normalizeDocument(v, depth+1)
	case *types.AttributeValueMemberSS:
		return normalizeStrings(v)
	case *types.AttributeValueMemberNS:
		return normalizeNumbers(v)
	case *types.AttributeValueMemberBS:
		return normalizeBinaries(v)
	}
	return v, nil
}

func normalizeNumber(v *types.AttributeValueMemberN) (types.AttributeValue, error) {
	if isNormalInteger(v.Value) {
		return v, nil
	}
	n, err := number.Parse(v.Value)
	if err != nil {
		return nil, err
	}
	if text := n.String(); text != v.Value {
		return &types.AttributeValueMemberN{Value: text}, nil
	}
	return v, nil
}

// isNormalInteger recognizes most numbers that are normal, so that they need not be parsed.
func isNormalInteger(text string) bool {
	if text == "0" {
		return true
	}
	digits := strings.TrimPrefix(text, "-")
	if digits == "" || len(digits) > number.MaxDigits || digits[0] == '0' {
		return false
	}
	for i := range len(digits) {
		if digits[i] < '0' || digits[i] > '9' {
			return false
		}
	}
	return true
}

func normalizeList(v *types.AttributeValueMemberL, depth int) (types.AttributeValue, error) {
	if depth > MaxNesting {
		return nil, tooDeep()
	}
	list, copied := v.Value, false
	for i, e := range v.Value {
		normal, err := normalize(e, depth)
		if err != nil {
			return nil, err
		}
		if normal == e {
			continue
		}
		if !copied {
			list, copied = slices.Clone(list), true
		}
		list[i] = normal
	}
	if copied {
		return &types.AttributeValueMemberL{Value: list}, nil
	}
	return v, nil
}

func normalizeDocument(v *types.AttributeValueMemberM, depth int) (types.AttributeValue, error) {
	if depth > MaxNesting {
		return nil, tooDeep()
	}
	document, changed, err := normalizeMap(v.Value, depth)
	if err != nil || !changed {
		return v, err
	}
	return &types.AttributeValueMemberM{Value: document}, nil
}

// normalizeMap returns the map itself if nothing changes.
func normalizeMap(item Item, depth int) (normal Item, changed bool, err error) {
	normal = item
	for name, v := range item {
		switch {
		case name == "":
			return nil, false, apierror.Validation("Empty attribute name")
		case len(name) > MaxNameLength:
			return nil, false, apierror.Validation("Attribute name is too large, must be less than %d bytes", MaxNameLength+1)
		}
		n, err := normalize(v, depth)
		if err != nil {
			return nil, false, err
		}
		if n == v {
			continue
		}
		if !changed {
			normal, changed = maps.Clone(item), true
		}
		normal[name] = n
	}
	return normal, changed, nil
}

func tooDeep() error {
	return apierror.Validation("Nesting Levels have exceeded supported limits: " +
		"Attributes in the item have nested levels beyond supported limit")
}

func normalizeStrings(v *types.AttributeValueMemberSS) (types.AttributeValue, error) {
	if len(v.Value) == 0 {
		return nil, emptySet("string")
	}
	members := slices.Sorted(slices.Values(v.Value))
	if len(slices.Compact(members)) < len(v.Value) {
		return nil, apierror.Validation("One or more parameter values were invalid: Input collection [%s] contains duplicates",
			strings.Join(v.Value, ", "))
	}
	return &types.AttributeValueMemberSS{Value: members}, nil
}

func normalizeNumbers(v *types.AttributeValueMemberNS) (types.AttributeValue, error) {
	if len(v.Value) == 0 {
		return nil, emptySet("number")
	}
	numbers := make([]number.Number, len(v.Value))
	for i, text := range v.Value {
		var err error
		if numbers[i], err = number.Parse(text); err != nil {
			return nil, err
		}
	}
	slices.SortFunc(numbers, number.Compare)
	if len(slices.Compact(numbers)) < len(v.Value) {
		return nil, apierror.Validation("Input collection contains duplicates")
	}
	members := make([]string, len(numbers))
	for i, n := range numbers {
		members[i] = n.String()
	}
	return &types.AttributeValueMemberNS{Value: members}, nil
}

func normalizeBinaries(v *types.AttributeValueMemberBS) (types.AttributeValue, error) {
	if len(v.Value) == 0 {
		return nil, apierror.Validation("One or more parameter values were invalid: Binary sets should not be empty")
	}
	members := slices.SortedFunc(slices.Values(v.Value), bytes.Compare)
	if len(slices.CompactFunc(members, bytes.Equal)) < len(v.Value) {
		return nil, apierror.Validation("One or more parameter values were invalid: Input collection of type BS contains duplicates.")
	}
	return &types.AttributeValueMemberBS{Value: members}, nil
}

// emptySet returns an error with the service's message, including its two spaces.
func emptySet(kind string) error {
	return apierror.Validation("One or more parameter values were invalid: An %s set  may not be empty", kind)
}

// CheckNesting refuses an item with too many nested lists and maps.
func CheckNesting(item Item) error {
	for _, v := range item {
		if depthOf(v) >= MaxNesting {
			return tooDeep()
		}
	}
	return nil
}

func depthOf(v types.AttributeValue) int {
	deepest := 0
	switch v := v.(type) {
	case *types.AttributeValueMemberL:
		for _, e := range v.Value {
			deepest = max(deepest, depthOf(e))
		}
		return deepest + 1
	case *types.AttributeValueMemberM:
		for _, e := range v.Value {
			deepest = max(deepest, depthOf(e))
		}
		return deepest + 1
	}
	return 0
}
