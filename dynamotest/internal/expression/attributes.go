package expression

import (
	"maps"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/millrace-dev/millrace/dynamotest/internal/apierror"
	"github.com/millrace-dev/millrace/dynamotest/internal/value"
)

// Limits of placeholders.
const (
	maxPlaceholder   = 255   // in bytes, including # or :
	maxAttributeName = 65535 // in bytes
)

// Attributes are the placeholders of one request, which all its expressions share. It records which
// placeholders were used, so parse the expressions of a request one after the other.
type Attributes struct {
	names      map[string]string
	values     value.Item
	usedNames  []string
	usedValues []string
}

// NewAttributes returns the placeholders of a request's ExpressionAttributeNames and
// ExpressionAttributeValues. nil means that the parameter is missing.
func NewAttributes(names map[string]string, values value.Item) *Attributes {
	return &Attributes{names: names, values: values}
}

// RefuseNames returns an error for names in a request without expressions.
func (a *Attributes) RefuseNames() error {
	if a.names == nil {
		return nil
	}
	return apierror.Validation("ExpressionAttributeNames can only be specified when using expressions")
}

// RefuseValues returns an error for values in a request without expressions that may use values.
// Call RefuseNames first. The kinds are the missing parameters in the order of DynamoDB's message:
// ConditionExpression for PutItem and DeleteItem, UpdateExpression and ConditionExpression for
// UpdateItem, FilterExpression and KeyConditionExpression for Query, FilterExpression for Scan.
func (a *Attributes) RefuseValues(kinds ...string) error {
	if a.values == nil {
		return nil
	}
	missing := strings.Join(kinds, " and ") + " is null"
	if len(kinds) > 1 {
		missing = strings.Join(kinds, " and ") + " are null"
	}
	return apierror.Validation("ExpressionAttributeValues can only be specified when using expressions: %s", missing)
}

// Validate checks the placeholders themselves, for a request with expressions. Call it before
// parsing them. It does not check the values of the placeholders.
func (a *Attributes) Validate() error {
	if a.names == nil && a.values == nil {
		return nil
	}
	if a.names != nil {
		if err := a.validateNames(); err != nil {
			return err
		}
	}
	if a.values != nil {
		return a.validateValues()
	}
	return nil
}

func (a *Attributes) validateNames() error {
	if len(a.names) == 0 {
		return apierror.Validation("ExpressionAttributeNames must not be empty")
	}
	for _, key := range slices.Sorted(maps.Keys(a.names)) {
		name := a.names[key]
		switch {
		case key == "":
			return apierror.Validation("ExpressionAttributeNames contains invalid key: The expression attribute map contains an empty key;")
		case len(key) > maxPlaceholder:
			return apierror.Validation("ExpressionAttributeNames contains invalid key: The expression attribute map contains a key that is too long; size of key: %d", len(key))
		case !isPlaceholder(key, tokenNameRef):
			return apierror.Validation("ExpressionAttributeNames contains invalid key: Syntax error; key: \"%s\"", key)
		case name == "":
			return apierror.Validation("ExpressionAttributeNames contains invalid value: Empty attribute name for key %s", key)
		case len(name) > maxAttributeName:
			return apierror.Validation("ExpressionAttributeNames contains invalid value: Attribute name is too large, must be less than 65536 bytes for key %s", key)
		}
	}
	return nil
}

func (a *Attributes) validateValues() error {
	if len(a.values) == 0 {
		return apierror.Validation("ExpressionAttributeValues must not be empty")
	}
	for _, key := range slices.Sorted(maps.Keys(a.values)) {
		switch {
		case key == "":
			return apierror.Validation("ExpressionAttributeValues contains invalid key: The expression attribute map contains an empty key;")
		case len(key) > maxPlaceholder:
			return apierror.Validation("ExpressionAttributeValues contains invalid key: The expression attribute map contains a key that is too long;")
		case !isPlaceholder(key, tokenValueRef):
			return apierror.Validation("ExpressionAttributeValues contains invalid key: Syntax error; key: \"%s\"", key)
		}
	}
	return nil
}

// isPlaceholder reports whether a text is one token of the kind. It accepts space around the token,
// although no expression can use such a placeholder.
func isPlaceholder(text string, kind tokenKind) bool {
	t := scan(text, 0)
	return t.kind == kind && scan(text, t.end).kind == tokenEnd
}

// CheckUsed returns an error if no expression has used a placeholder. Call it after parsing all
// expressions.
func (a *Attributes) CheckUsed() error {
	if len(a.usedNames) < len(a.names) {
		return apierror.Validation("Value provided in ExpressionAttributeNames unused in expressions: keys: {%s}", unused(a.names, a.usedNames))
	}
	if len(a.usedValues) < len(a.values) {
		return apierror.Validation("Value provided in ExpressionAttributeValues unused in expressions: keys: {%s}", unused(a.values, a.usedValues))
	}
	return nil
}

func unused[V any](all map[string]V, used []string) string {
	keys := slices.Sorted(maps.Keys(all))
	return strings.Join(slices.DeleteFunc(keys, func(key string) bool { return slices.Contains(used, key) }), ", ")
}

func (a *Attributes) name(ref string) (string, bool) {
	name, ok := a.names[ref]
	if ok && !slices.Contains(a.usedNames, ref) {
		a.usedNames = append(a.usedNames, ref)
	}
	return name, ok
}

func (a *Attributes) value(ref string) (types.AttributeValue, bool) {
	v, ok := a.values[ref]
	if ok && !slices.Contains(a.usedValues, ref) {
		a.usedValues = append(a.usedValues, ref)
	}
	return v, ok
}
