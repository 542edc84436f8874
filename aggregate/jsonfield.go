package aggregate

import (
	"reflect"
	"strings"
	"unicode"
)

// jsonName returns the name and the options in the tag of a field. The name is empty if the tag has
// none, or one that encoding/json does not accept. Then encoding/json uses the name of the field.
func jsonName(field reflect.StructField) (name, options string) {
	name, options, _ = strings.Cut(field.Tag.Get("json"), ",")
	refused := func(r rune) bool {
		return !strings.ContainsRune("!#$%&()*+-./:;<=>?@[]^_{|}~ ", r) && !unicode.IsLetter(r) && !unicode.IsDigit(r)
	}
	if strings.ContainsFunc(name, refused) {
		name = ""
	}
	return name, options
}

func hasOption(options, option string) bool {
	return strings.Contains(","+options+",", ","+option+",")
}

// alwaysWritten reports whether JSON writes at least one field of each value of a struct.
func alwaysWritten(t reflect.Type) bool {
	for i := range t.NumField() {
		field := t.Field(i)
		name, options := jsonName(field)
		kind := field.Type.Kind()
		switch {
		case field.Tag.Get("json") == "-":
		case field.Anonymous && name == "" && kind == reflect.Struct:
			if alwaysWritten(field.Type) {
				return true
			}
		case !field.IsExported() || field.Anonymous && name == "" && kind == reflect.Pointer && field.Type.Elem().Kind() == reflect.Struct:
		case hasOption(options, "omitzero"):
		case !hasOption(options, "omitempty") || kind == reflect.Struct || kind == reflect.Array && field.Type.Len() > 0:
			return true
		}
	}
	return false
}
