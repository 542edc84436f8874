package dynamotest

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/millrace-dev/millrace/dynamotest/internal/apierror"
)

// instead maps a parameter from before expressions to its replacement.
var instead = map[string]string{
	"AttributesToGet":     "ProjectionExpression",
	"AttributeUpdates":    "UpdateExpression",
	"ConditionalOperator": "an expression",
	"Expected":            "ConditionExpression",
	"KeyConditions":       "KeyConditionExpression",
	"QueryFilter":         "FilterExpression",
	"ScanFilter":          "FilterExpression",
}

// parameters holds the unsupported parameters of an operation, and those with a set of values that
// the engine does not check. It is made from the SDK's struct. So a parameter of a later SDK is
// refused and not ignored.
type parameters struct {
	refused []reflect.StructField
	enums   []enum
}

type enum struct {
	field  reflect.StructField
	values []string
}

func parametersOf(input reflect.Type, supported []string) parameters {
	var p parameters
	for i := range input.NumField() {
		field := input.Field(i)
		switch {
		case !field.IsExported():
		case !slices.Contains(supported, field.Name):
			p.refused = append(p.refused, field)
		case field.Name == "ReturnConsumedCapacity" || field.Name == "ReturnItemCollectionMetrics":
			e := enum{field: field}
			values := reflect.New(field.Type).MethodByName("Values").Call(nil)[0]
			for v := range values.Len() {
				e.values = append(e.values, values.Index(v).String())
			}
			p.enums = append(p.enums, e)
		}
	}
	return p
}

// check refuses unsupported parameters, and values that do not exist.
func (p parameters) check(operation string, in any) error {
	v := reflect.ValueOf(in).Elem()
	for _, field := range p.refused {
		if v.FieldByIndex(field.Index).IsZero() {
			continue
		}
		message := fmt.Sprintf("dynamotest does not support the parameter %s of %s", field.Name, operation)
		if other, ok := instead[field.Name]; ok {
			message += ": use " + other
		}
		return apierror.Validation("%s", message)
	}
	for _, e := range p.enums {
		if value := v.FieldByIndex(e.field.Index).String(); value != "" && !slices.Contains(e.values, value) {
			return apierror.Validation("1 validation error detected: Value '%s' at '%s' failed to satisfy constraint: "+
				"Member must satisfy enum value set: [%s]", value, strings.ToLower(e.field.Name[:1])+e.field.Name[1:], strings.Join(e.values, ", "))
		}
	}
	return nil
}
