package api

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/getkin/kin-openapi/openapi3"
)

// Users of the page can enter values that are too long or too many. Messages about such faults
// contain the labels of the page, not the names in the description. Only programs make other
// faults.

// parameterLabel returns the x-label of a parameter, or its name.
func parameterLabel(p *openapi3.Parameter) string {
	if label, ok := p.Extensions["x-label"].(string); ok {
		return label
	}
	return p.Name
}

// limits are the constraints that people violate.
var limits = []string{"minLength", "maxLength", "minimum", "maximum", "minItems", "maxItems"}

// bodyLabel names the part of a body with a fault: by the titles on the way, as in "dish 2, price
// in cents", or for programs by its path.
func bodyLabel(body *openapi3.RequestBody, e *openapi3.SchemaError) string {
	schema, pointer := body.Content.Get("application/json").Schema.Value, e.JSONPointer()
	if !slices.Contains(limits, e.SchemaField) {
		return strings.Join(pointer, ".")
	}
	var labels []string
	for _, name := range pointer {
		n, err := strconv.Atoi(name)
		switch property := schema.Properties[name]; {
		case property != nil:
			schema = property.Value
			labels = append(labels, title(schema, name))
		case schema.Items != nil && err == nil && len(labels) > 0:
			schema = schema.Items.Value
			labels[len(labels)-1] = fmt.Sprintf("%s %d", title(schema, "item"), n+1)
		}
	}
	return strings.Join(labels, ", ")
}

func title(schema *openapi3.Schema, name string) string {
	if schema.Title != "" {
		return schema.Title
	}
	return name
}

// schemaFault says which rule a value violates.
func schemaFault(e *openapi3.SchemaError) string {
	s := e.Schema
	switch e.SchemaField {
	case "required":
		return "it is missing"
	case "minLength":
		// The description of the API has no other minimum length than 1.
		return "it must not be empty"
	case "maxLength":
		return fmt.Sprintf("it must have at most %d characters", *s.MaxLength)
	case "minItems":
		return fmt.Sprintf("there must be at least %d", s.MinItems)
	case "maxItems":
		return fmt.Sprintf("there must be at most %d", *s.MaxItems)
	case "minimum":
		return fmt.Sprintf("it must be at least %.0f", *s.Min)
	case "maximum":
		return fmt.Sprintf("it must be at most %.0f", *s.Max)
	case "enum":
		return "it must be one of " + strings.Trim(strings.Join(strings.Fields(fmt.Sprint(s.Enum)), ", "), "[]")
	case "pattern", "format", "anyOf":
		if s.Description != "" {
			return "it must be " + s.Description
		}
	}
	return strings.Replace(e.Reason, "value must be", "it must be", 1)
}
