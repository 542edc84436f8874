package catalogue

import (
	"cmp"
	"reflect"
	"slices"
	"strings"
	"unicode"
)

// field is a field of a struct as encoding/json writes it.
type field struct {
	name     string
	tagged   bool // the name is that of the tag
	t        reflect.Type
	index    []int
	about    string // the tag description
	quoted   bool   // the option string
	optional bool   // not every value has it: omitempty, omitzero, or in an embedded pointer
	// addressable reports that the field is addressable although the struct may not be.
	addressable bool
}

// nested is a struct, or one that is embedded in it.
type nested struct {
	t           reflect.Type
	index       []int
	optional    bool
	addressable bool
}

// fieldsOf returns the fields that encoding/json writes of a struct, in their order. Of fields with
// the same name it takes the one that is least nested, then the one with a tag. If there are
// several, it takes none.
func fieldsOf(t reflect.Type) []field {
	var all []field
	seen := map[reflect.Type]bool{}
	for current := []nested{{t: t}}; len(current) > 0; {
		count := map[reflect.Type]int{}
		for _, in := range current {
			count[in.t]++
		}
		var next []nested
		for _, in := range current {
			if seen[in.t] {
				continue
			}
			seen[in.t] = true
			fields, embedded := in.fields()
			all, next = append(all, fields...), append(next, embedded...)
			if count[in.t] > 1 {
				all = append(all, fields...) // so that the two of them exclude each other
			}
		}
		current = next
	}
	return dominant(all)
}

// fields returns the fields of a struct, and the structs that are embedded in it.
func (in nested) fields() (fields []field, embedded []nested) {
	for i := range in.t.NumField() {
		sf := in.t.Field(i)
		target := sf.Type
		if target.Name() == "" && target.Kind() == reflect.Pointer {
			target = target.Elem()
		}
		if !sf.IsExported() && (!sf.Anonymous || target.Kind() != reflect.Struct) || sf.Tag.Get("json") == "-" {
			continue
		}
		name, options := jsonName(sf)
		index := append(slices.Clone(in.index), i)
		if sf.Anonymous && name == "" && target.Kind() == reflect.Struct {
			byPointer := target != sf.Type
			embedded = append(embedded, nested{target, index, in.optional || byPointer, in.addressable || byPointer})
			continue
		}
		fields = append(fields, field{
			name: cmp.Or(name, sf.Name), tagged: name != "", t: sf.Type, index: index,
			about: sf.Tag.Get("description"), addressable: in.addressable,
			quoted:   has(options, "string") && canBeQuoted(target.Kind()),
			optional: in.optional || has(options, "omitzero") || has(options, "omitempty") && canBeEmpty(sf.Type),
		})
	}
	return fields, embedded
}

// dominant returns the fields that encoding/json chooses of fields with the same name, in the order
// of the struct.
func dominant(all []field) (chosen []field) {
	slices.SortStableFunc(all, func(a, b field) int {
		tags := 0
		if a.tagged != b.tagged {
			tags = 1
			if a.tagged {
				tags = -1
			}
		}
		return cmp.Or(strings.Compare(a.name, b.name), cmp.Compare(len(a.index), len(b.index)), tags)
	})
	for i := 0; i < len(all); {
		end := i + 1
		for end < len(all) && all[end].name == all[i].name {
			end++
		}
		if end == i+1 || len(all[i].index) != len(all[i+1].index) || all[i].tagged != all[i+1].tagged {
			chosen = append(chosen, all[i])
		}
		i = end
	}
	slices.SortFunc(chosen, func(a, b field) int { return slices.Compare(a.index, b.index) })
	return chosen
}

// jsonName returns the name and the options in the tag of a field. The name is empty if the tag has
// none, or one that encoding/json does not accept.
func jsonName(sf reflect.StructField) (name, options string) {
	name, options, _ = strings.Cut(sf.Tag.Get("json"), ",")
	refused := func(r rune) bool {
		return !strings.ContainsRune("!#$%&()*+-./:;<=>?@[]^_{|}~ ", r) && !unicode.IsLetter(r) && !unicode.IsDigit(r)
	}
	if strings.ContainsFunc(name, refused) {
		name = ""
	}
	return name, options
}

func has(options, option string) bool { return strings.Contains(","+options+",", ","+option+",") }

// canBeQuoted reports whether the option string has an effect.
func canBeQuoted(kind reflect.Kind) bool {
	return kind >= reflect.Bool && kind <= reflect.Float64 || kind == reflect.String
}

// canBeEmpty reports whether omitempty has an effect.
func canBeEmpty(t reflect.Type) bool {
	switch t.Kind() {
	case reflect.Array:
		return t.Len() == 0
	case reflect.Struct, reflect.Chan, reflect.Func, reflect.Complex64, reflect.Complex128, reflect.UnsafePointer:
		return false
	}
	return true
}
