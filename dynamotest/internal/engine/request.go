package engine

import (
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/millrace-dev/millrace/dynamotest/internal/apierror"
	"github.com/millrace-dev/millrace/dynamotest/internal/expression"
	"github.com/millrace-dev/millrace/dynamotest/internal/value"
)

// source is an optional expression of a request.
type source struct {
	parameter string
	text      *string
	values    bool // whether it may use values
}

func conditionSource(text *string) source  { return source{"ConditionExpression", text, true} }
func filterSource(text *string) source     { return source{"FilterExpression", text, true} }
func projectionSource(text *string) source { return source{"ProjectionExpression", text, false} }

// placeholders checks the names and values of a request with these expressions.
func placeholders(names map[string]string, values value.Item, sources ...source) (*expression.Attributes, error) {
	values, err := normalizeValues(values)
	a := expression.NewAttributes(names, values)
	given, withValues := false, false
	var lacking []string
	for _, s := range sources {
		given = given || s.text != nil
		if s.values {
			withValues = withValues || s.text != nil
			lacking = append(lacking, s.parameter)
		}
	}
	if !given {
		if err := a.RefuseNames(); err != nil {
			return nil, err
		}
	}
	if !withValues {
		if err := a.RefuseValues(lacking...); err != nil {
			return nil, err
		}
	}
	if !given {
		return a, nil
	}
	if syntax := a.Validate(); syntax != nil {
		return nil, syntax
	}
	return a, err
}

func normalizeValues(values value.Item) (value.Item, error) {
	if len(values) == 0 {
		return values, nil
	}
	normal := make(value.Item, len(values))
	for name, v := range values {
		var err error
		if normal[name], err = value.Normalize(v); err != nil {
			return values, apierror.Validation("ExpressionAttributeValues contains invalid value: %s for key %s", message(err), name)
		}
	}
	return normal, nil
}

// message returns the text of an API error without its code.
func message(err error) string {
	if api, ok := err.(interface{ ErrorMessage() string }); ok {
		return api.ErrorMessage()
	}
	return err.Error()
}

// parseCondition parses an optional condition.
func parseCondition(parameter string, source *string, a *expression.Attributes) (*expression.Condition, error) {
	if source == nil {
		return nil, nil //nolint:nilnil // no condition is a condition that always holds
	}
	return expression.ParseCondition(parameter, *source, a)
}

// parseProjection parses an optional projection.
func parseProjection(source *string, a *expression.Attributes) (*expression.Projection, error) {
	if source == nil {
		return nil, nil //nolint:nilnil // no projection leaves everything in
	}
	return expression.ParseProjection(*source, a)
}

func project(p *expression.Projection, item value.Item) value.Item {
	if p == nil || item == nil {
		return item
	}
	return p.Apply(item)
}

// member checks the value of an enumeration.
func member[E ~string](parameter string, v E, all []E, allowed ...E) error {
	switch {
	case v == "" || slices.Contains(allowed, v):
		return nil
	case !slices.Contains(all, v):
		texts := make([]string, len(all))
		for i, a := range all {
			texts[i] = string(a)
		}
		return apierror.Validation("1 validation error detected: Value '%s' at '%s' failed to satisfy constraint: "+
			"Member must satisfy enum value set: [%s]", v, parameter, strings.Join(texts, ", "))
	}
	texts := make([]string, len(allowed))
	for i, a := range allowed {
		texts[len(allowed)-1-i] = string(a)
	}
	return apierror.Validation("%s can only be %s", strings.ToUpper(parameter[:1])+parameter[1:], strings.Join(texts, " or "))
}

func checkReturnValues(v types.ReturnValue, allowed ...types.ReturnValue) error {
	return member("returnValues", v, v.Values(), allowed...)
}

func checkReturnOnFailure(v types.ReturnValuesOnConditionCheckFailure) error {
	return member("returnValuesOnConditionCheckFailure", v, v.Values(), v.Values()...)
}

// bounded checks an optional number.
func bounded(parameter string, v *int32, least, most int32) error {
	switch {
	case v == nil:
		return nil
	case *v < least:
		return apierror.Validation("1 validation error detected: Value '%d' at '%s' failed to satisfy constraint: "+
			"Member must have value greater than or equal to %d", *v, parameter, least)
	case *v > most:
		return apierror.Validation("1 validation error detected: Value '%d' at '%s' failed to satisfy constraint: "+
			"Member must have value less than or equal to %d", *v, parameter, most)
	}
	return nil
}

// counted checks the number of members of a list or map.
func counted(parameter, members string, n, most int) error {
	switch {
	case n < 1:
		return apierror.Validation("1 validation error detected: Value '%s' at '%s' failed to satisfy constraint: "+
			"Member must have length greater than or equal to 1", members, parameter)
	case n > most:
		return apierror.Validation("1 validation error detected: Value '%s' at '%s' failed to satisfy constraint: "+
			"Member must have length less than or equal to %d", members, parameter, most)
	}
	return nil
}

func required(parameter string) error {
	return apierror.Validation("1 validation error detected: Value null at '%s' failed to satisfy constraint: Member must not be null", parameter)
}

// present returns the error for a missing parameter.
func present(parameter string, given bool) error {
	if given {
		return nil
	}
	return required(parameter)
}

// first returns the first error that is not nil.
func first(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}
