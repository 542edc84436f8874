package api

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/getkin/kin-openapi/openapi3"
)

// Values that are too long, too many or the like come from people too, who see the labels of the
// page and not the names in the description. Other faults are those of programs.

// parameterLabel is the x-label of a parameter, or its name.
func parameterLabel(p *openapi3.Parameter) string {
	if label, ok := p.Extensions["x-label"].(string); ok {
		return label
	}
	return p.Name
}

// limits are the constraints whose faults people make.
var limits = []string{"minLength", "maxLength", "minimum", "maximum", "minItems", "maxItems"}

// bodyLabel names the part of a body that a fault is in: by the titles on the way, as in "dish 2,
// price in cents", or for programs by its path.
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

// schemaFault says what a value must be.
func schemaFault(e *openapi3.SchemaError) string {
	s := e.Schema
	switch e.SchemaField {
	case "required":
		return "it is missing"
	case "minLength":
		return "it must not be empty" // which is all that the description asks for
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
