package engine

import (
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/millrace-dev/millrace/dynamotest/internal/apierror"
)

func (c *constraints) attributes(at string, definitions []types.AttributeDefinition) {
	for i, d := range definitions {
		at := element(at, i)
		c.text(at+".attributeName", d.AttributeName, 1)
		if c.required(at+".attributeType", d.AttributeType != "") {
			oneOf(c, at+".attributeType", d.AttributeType, types.ScalarAttributeTypeB, types.ScalarAttributeTypeN, types.ScalarAttributeTypeS)
		}
	}
}

// key requires 1 to most elements.
func (c *constraints) key(at string, schema []types.KeySchemaElement, most int) {
	if !c.required(at, schema != nil) {
		return
	}
	c.length(at, "'"+describeKey(schema)+"'", len(schema), 1, most)
	for i, e := range schema {
		at := element(at, i)
		c.text(at+".attributeName", e.AttributeName, 1)
		if c.required(at+".keyType", e.KeyType != "") {
			oneOf(c, at+".keyType", e.KeyType, types.KeyTypeHash, types.KeyTypeRange)
		}
	}
}

func describeKey(schema []types.KeySchemaElement) string {
	elements := make([]string, len(schema))
	for i, e := range schema {
		elements[i] = "KeySchemaElement(attributeName=" + aws.ToString(e.AttributeName) + ", keyType=" + string(e.KeyType) + ")"
	}
	return listed(elements)
}

// parseKey makes a key from its elements, which must satisfy the constraints.
func parseKey(schema []types.KeySchemaElement, definitions []types.AttributeDefinition) (keySchema, error) {
	var key keySchema
	for i, e := range schema {
		d := definitionOf(definitions, *e.AttributeName)
		if d == nil {
			return key, invalid("Some index key attributes are not defined in AttributeDefinitions. Keys: %s, AttributeDefinitions: %s",
				listed(namesOfKey(schema)), listed(namesOfAttributes(definitions)))
		}
		// A copy, because the caller can change the string behind the pointer.
		a := keyAttribute{name: strings.Clone(*e.AttributeName), kind: d.AttributeType}
		if i == 0 {
			key.partition = a
		} else {
			key.sort = a
		}
	}
	switch {
	case key.partition.name == key.sort.name:
		return key, apierror.Validation("Both the Hash Key and the Range Key element in the KeySchema have the same name")
	case schema[0].KeyType != types.KeyTypeHash:
		return key, apierror.Validation("Invalid KeySchema: The first KeySchemaElement is not a HASH key type")
	case len(schema) > 1 && schema[1].KeyType != types.KeyTypeRange:
		return key, apierror.Validation("Invalid KeySchema: The second KeySchemaElement is not a RANGE key type")
	}
	return key, nil
}

func definitionOf(definitions []types.AttributeDefinition, name string) *types.AttributeDefinition {
	for i := range definitions {
		if *definitions[i].AttributeName == name {
			return &definitions[i]
		}
	}
	return nil
}

// checkDefinitions requires that each attribute is defined once, and that a key uses it.
func checkDefinitions(definitions []types.AttributeDefinition, table keySchema, indexes []*index) error {
	used := namesInUse(table, indexes)
	names := namesOfAttributes(definitions)
	if len(indexes) == 0 && len(names) != len(used) {
		return invalid("Number of attributes in KeySchema does not exactly match number of attributes defined in AttributeDefinitions")
	}
	if hasTwice(names) {
		return attributeTwice()
	}
	if len(names) != len(used) {
		return invalid("Some AttributeDefinitions are not used. AttributeDefinitions: %s, keys used: %s", listed(names), listed(used))
	}
	return nil
}

func hasTwice(names []string) bool {
	seen := make(map[string]bool, len(names))
	for _, name := range names {
		if seen[name] {
			return true
		}
		seen[name] = true
	}
	return false
}

func attributeTwice() error {
	return apierror.Validation("Cannot have two attributes with the same name")
}

// namesInUse returns the attributes of all keys, each once.
func namesInUse(table keySchema, indexes []*index) []string {
	var names []string
	seen := map[string]bool{}
	add := func(key keySchema) {
		for _, a := range key.attributes() {
			if !seen[a.name] {
				seen[a.name] = true
				names = append(names, a.name)
			}
		}
	}
	add(table)
	for _, ix := range indexes {
		add(ix.key)
	}
	return names
}

func namesOfKey(schema []types.KeySchemaElement) []string {
	names := make([]string, len(schema))
	for i, e := range schema {
		names[i] = *e.AttributeName
	}
	return names
}

func namesOfAttributes(definitions []types.AttributeDefinition) []string {
	names := make([]string, len(definitions))
	for i, d := range definitions {
		names[i] = *d.AttributeName
	}
	return names
}

func copyOfAttributes(definitions []types.AttributeDefinition) []types.AttributeDefinition {
	copied := make([]types.AttributeDefinition, len(definitions))
	for i, d := range definitions {
		copied[i] = types.AttributeDefinition{AttributeName: aws.String(*d.AttributeName), AttributeType: d.AttributeType}
	}
	return copied
}
