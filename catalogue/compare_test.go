package catalogue

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestMessagesAreComparedByTheNumbersOfTheirFields(t *testing.T) {
	t.Parallel()
	of := func(messages ...protobufMessage) *schema {
		return &schema{Protobuf: &protobufMessages{Message: messages[0].Name, Messages: messages}}
	}
	fields := func(f ...protobufField) *schema { return of(protobufMessage{"bank.Moved", f}) }
	nested := func(name, prefix, suffix, kind string) *schema {
		return of(protobufMessage{"bank.Moved", []protobufField{{Number: 1, Name: "to", Type: prefix + name + suffix}}},
			protobufMessage{name, []protobufField{{Number: 1, Name: "iban", Type: kind}, {Number: 2, Name: "next", Type: name}}})
	}
	before := fields(protobufField{Number: 1, Name: "amount", Type: "int64"})
	for name, test := range map[string]struct {
		before, after *schema
		want          []diff
	}{
		"equal":            {before, before, nil},
		"another name":     {before, fields(protobufField{Number: 1, Name: "cents", Type: "int64"}), nil},
		"another type":     {before, fields(protobufField{Number: 1, Name: "amount", Type: "string"}), []diff{{retyped, "amount", "int64", "string"}}},
		"a list":           {before, fields(protobufField{Number: 1, Name: "amount", Type: "repeated int64"}), []diff{{retyped, "amount", "int64", "repeated int64"}}},
		"another number":   {before, fields(protobufField{Number: 2, Name: "amount", Type: "int64"}), []diff{{kind: removed, field: "amount"}, {addedOptional, "amount", "", "int64"}}},
		"a required field": {fields(), fields(protobufField{Number: 1, Name: "a", Type: "bool", Required: true}), []diff{{added, "a", "", "bool"}}},
		"becomes required": {before, fields(protobufField{Number: 1, Name: "amount", Type: "int64", Required: true}), []diff{{kind: nowRequired, field: "amount"}}},
		"a oneof of two fields": {
			fields(protobufField{Number: 1, Name: "a", Type: "bool"}, protobufField{Number: 2, Name: "b", Type: "bool"}),
			fields(protobufField{Number: 1, Name: "a", Type: "bool", OneOf: "c"}, protobufField{Number: 2, Name: "b", Type: "bool", OneOf: "c"}),
			[]diff{{retyped, "b", "a field of its own", "one of c"}},
		},
		"another name of a oneof": {
			fields(protobufField{Number: 1, Name: "a", Type: "bool", OneOf: "b"}, protobufField{Number: 2, Name: "b", Type: "bool", OneOf: "b"}),
			fields(protobufField{Number: 1, Name: "a", Type: "bool", OneOf: "c"}, protobufField{Number: 2, Name: "b", Type: "bool", OneOf: "c"}), nil,
		},
		"a oneof of one field": {before, fields(protobufField{Number: 1, Name: "amount", Type: "int64", OneOf: "c"}, protobufField{Number: 2, Name: "b", Type: "bool", OneOf: "c"}), []diff{{addedOptional, "b", "", "bool"}}},
		"a nested message":     {nested("bank.A", "", "", "string"), nested("bank.B", "", "", "string"), nil},
		"a nested field":       {nested("bank.A", "", "", "string"), nested("bank.B", "", "", "bytes"), []diff{{retyped, "to.iban", "string", "bytes"}}},
		"in a list":            {nested("bank.A", "repeated ", "", "string"), nested("bank.A", "repeated ", "", "bytes"), []diff{{retyped, "to.iban", "string", "bytes"}}},
		"in a map":             {nested("bank.A", "map<int32, ", ">", "string"), nested("bank.A", "map<int32, ", ">", "bytes"), []diff{{retyped, "to.iban", "string", "bytes"}}},
		"the keys of a map":    {nested("bank.A", "map<int32, ", ">", "string"), nested("bank.A", "map<string, ", ">", "string"), []diff{{retyped, "to", "map<int32, bank.A>", "map<string, bank.A>"}}},
		"JSON":                 {before, &schema{}, []diff{{retyped, "", "message bank.Moved", "JSON"}}},
	} {
		assert.Equal(t, test.want, differences(test.before, test.after), name)
	}
}

func TestTheNumbersOfAnEnumerationKeepTheirMeaning(t *testing.T) {
	t.Parallel()
	of := func(values ...protobufEnumValue) *schema {
		return &schema{Protobuf: &protobufMessages{
			Message:  "bank.Moved",
			Messages: []protobufMessage{{"bank.Moved", []protobufField{{Number: 1, Name: "how", Type: "bank.How"}, {Number: 2, Name: "also", Type: "bank.How"}}}},
			Enums:    []protobufEnum{{"bank.How", values}},
		}}
	}
	before := of(protobufEnumValue{0, "NONE"}, protobufEnumValue{1, "CASH"}, protobufEnumValue{2, "CARD"})
	for name, test := range map[string]struct {
		after *schema
		want  []diff
	}{
		"another name": {of(protobufEnumValue{0, "NONE"}, protobufEnumValue{1, "COINS"}, protobufEnumValue{2, "CARD"}), nil},
		"a new value":  {of(protobufEnumValue{0, "NONE"}, protobufEnumValue{1, "CASH"}, protobufEnumValue{2, "CARD"}, protobufEnumValue{3, "COINS"}), nil},
		"removed":      {of(protobufEnumValue{0, "NONE"}, protobufEnumValue{2, "CARD"}), []diff{{retyped, "how", "CASH = 1", "without that number"}}},
		"exchanged": {of(protobufEnumValue{0, "NONE"}, protobufEnumValue{2, "CASH"}, protobufEnumValue{1, "CARD"}), []diff{
			{retyped, "how", "CASH = 1", "CARD = 1"}, {retyped, "how", "CARD = 2", "CASH = 2"},
		}},
	} {
		assert.Equal(t, test.want, differences(before, test.after), name)
	}
}

func TestReadingOldPayloadsAsOtherTypes(t *testing.T) {
	t.Parallel()
	list := func(items *schema) *schema { return &schema{Type: kinds{"array", null}, Items: items} }
	text, whole := &schema{Type: kinds{"string"}}, &schema{Type: kinds{"integer"}, Format: "int64"}
	byNumber := &schema{Type: kinds{"object"}, AdditionalProperties: text, PropertyNames: &schema{Pattern: "^-?[0-9]+$"}}
	two := 2
	for name, test := range map[string]struct {
		before, as *schema
		want       []diff
	}{
		"a time as text":         {&schema{Type: kinds{"string"}, Format: "date-time"}, text, nil},
		"text as a time":         {text, &schema{Type: kinds{"string"}, Format: "date-time"}, []diff{{retyped, "", "string", "string (date-time)"}}},
		"an integer as a number": {whole, &schema{Type: kinds{"number"}, Format: "double"}, nil},
		"a number as an integer": {&schema{Type: kinds{"number"}, Format: "double"}, whole, []diff{{retyped, "", "number (double)", "integer (int64)"}}},
		"a float as any number":  {&schema{Type: kinds{"number"}, Format: "double"}, &schema{Type: kinds{"number"}}, nil},
		"a quoted integer":       {&schema{Type: kinds{"string"}, Format: "int32"}, &schema{Type: kinds{"string"}, Format: "int64"}, nil},
		"its text":               {&schema{Type: kinds{"string"}, Format: "int32"}, text, nil},
		"a map by integers":      {byNumber, &schema{Type: kinds{"object"}, AdditionalProperties: text}, nil},
		"and its values":         {byNumber, &schema{Type: kinds{"object"}, AdditionalProperties: whole}, []diff{{retyped, "{}", "string", "integer (int64)"}}},
		"an array as a list":     {&schema{Type: kinds{"array"}, Items: text, MinItems: &two, MaxItems: &two}, list(text), []diff{{kind: nowNull}}},
		"elements":               {&schema{Type: kinds{"array"}, Items: text, MinItems: &two, MaxItems: &two}, list(whole), []diff{{kind: nowNull}, {retyped, "[]", "string", "integer (int64)"}}},
		"null":                   {&schema{Type: kinds{"string", null}, Format: "date-time"}, text, []diff{{kind: nowNotNull}}},
		"anything":               {&schema{}, text, nil},
	} {
		assert.Equal(t, test.want, readDifferences(test.before, test.as), name)
	}
}

func TestNullIsComparedAtEachPlaceOfAType(t *testing.T) {
	t.Parallel()
	address := &schema{Ref: "#/$defs/Address"}
	of := func(to *schema) *schema {
		return &schema{
			Type:       kinds{"object"},
			Properties: properties{{"from", address}, {"to", to}},
			Required:   []string{"from"},
			Defs:       properties{{"Address", &schema{Type: kinds{"object"}}}},
		}
	}
	list := func(items *schema) *schema { return &schema{Type: kinds{"array"}, Items: items} }
	assert.Equal(t, []diff{{kind: nowNull, field: "to"}}, differences(of(address), of(nullable(address))))
	assert.Equal(t, []diff{{kind: nowNotNull, field: "to[]"}}, differences(of(list(nullable(address))), of(list(address))))
}
