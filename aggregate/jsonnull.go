package aggregate

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"sync"
)

// nullError reports a null that encoding/json would decode as a zero value.
type nullError struct {
	path string // from the checked value
	t    reflect.Type
}

func (e *nullError) Error() string {
	return fmt.Sprintf("%s: null cannot be a %s: use a pointer where it may be missing", strings.TrimPrefix(e.path, "."), e.t)
}

// checkNulls returns a [*nullError] if data has a null that the type cannot hold. Data has been
// decoded into the type before, so it is well-formed. A scan of its bytes takes a tenth of the time
// of decoding it again.
func checkNulls(data []byte, t reflect.Type) error {
	scan := nullScan{data: data}
	return scan.value(t)
}

type nullScan struct {
	data []byte
	at   int
}

// value reads one value of a type. A nil type means that the value is not checked.
func (s *nullScan) value(t reflect.Type) error {
	switch s.next() {
	case '{':
		return s.object(contentOf(t))
	case '[':
		return s.array(elementOf(contentOf(t)))
	case '"':
		s.text()
	case 'n':
		s.at += len("null")
		if t != nil && neverNull(t) {
			return &nullError{t: t}
		}
	default: // a number, true or false
		for s.at < len(s.data) && strings.IndexByte(",]} \t\r\n", s.data[s.at]) < 0 {
			s.at++
		}
	}
	return nil
}

func (s *nullScan) object(t reflect.Type) error {
	for s.at++; s.next() != '}'; s.comma() {
		key := s.text()
		s.next()
		s.at++ // the colon
		if err := s.value(memberOf(t, key)); err != nil {
			return under("."+string(key), err)
		}
	}
	s.at++
	return nil
}

func (s *nullScan) array(element reflect.Type) error {
	s.at++
	for i := 0; s.next() != ']'; i++ {
		if err := s.value(element); err != nil {
			return under(fmt.Sprintf("[%d]", i), err)
		}
		s.comma()
	}
	s.at++
	return nil
}

// next returns the next byte that is not white space, or 0 at the end.
func (s *nullScan) next() byte {
	for ; s.at < len(s.data); s.at++ {
		switch c := s.data[s.at]; c {
		case ' ', '\t', '\r', '\n':
		default:
			return c
		}
	}
	return 0
}

func (s *nullScan) comma() {
	if s.next() == ',' {
		s.at++
	}
}

// text reads a string and returns the text between its quotes. It decodes the string only if it has
// an escape.
func (s *nullScan) text() []byte {
	start, escaped := s.at, false
	for s.at++; s.data[s.at] != '"'; s.at++ {
		if s.data[s.at] == '\\' {
			escaped = true
			s.at++
		}
	}
	s.at++
	if !escaped {
		return s.data[start+1 : s.at-1]
	}
	var text string
	if json.Unmarshal(s.data[start:s.at], &text) != nil {
		// This does not happen, since the data has been decoded before.
		return nil
	}
	return []byte(text)
}

func under(path string, err error) error {
	var null *nullError
	if errors.As(err, &null) {
		null.path = path + null.path
	}
	return err
}

// contentOf returns the struct, map, slice or array type into which an object or array is decoded.
// It returns nil if the type has its own decoding method.
func contentOf(t reflect.Type) reflect.Type {
	for t != nil && t.Kind() == reflect.Pointer && !decodesItself(t.Elem()) {
		t = t.Elem()
	}
	if t == nil || t.Kind() == reflect.Pointer || t.Kind() == reflect.Interface || decodesItself(t) {
		return nil
	}
	return t
}

func elementOf(t reflect.Type) reflect.Type {
	if t == nil || t.Kind() != reflect.Slice && t.Kind() != reflect.Array {
		return nil
	}
	return t.Elem()
}

func memberOf(t reflect.Type, name []byte) reflect.Type {
	switch {
	case t == nil:
		return nil
	case t.Kind() == reflect.Map:
		return t.Elem()
	case t.Kind() != reflect.Struct:
		return nil
	}
	known, ok := jsonMembers.Load(t)
	if !ok {
		members := map[string]reflect.Type{}
		addMembers(members, t, map[reflect.Type]bool{})
		known, _ = jsonMembers.LoadOrStore(t, members)
	}
	members := known.(map[string]reflect.Type)
	if exact, ok := members[string(name)]; ok {
		return exact
	}
	for other, member := range members {
		if bytes.EqualFold([]byte(other), name) {
			return member
		}
	}
	return nil
}

// jsonMembers caches the fields of structs by their JSON names.
var jsonMembers sync.Map

// addMembers adds the fields of a struct and of its embedded structs. No two of them have the same
// name: [Definition.Validate] has checked that.
func addMembers(members map[string]reflect.Type, t reflect.Type, within map[reflect.Type]bool) {
	if within[t] {
		return
	}
	within[t] = true
	for i := range t.NumField() {
		field := t.Field(i)
		name, _ := jsonName(field)
		target := field.Type
		if target.Kind() == reflect.Pointer {
			target = target.Elem()
		}
		switch {
		case field.Tag.Get("json") == "-":
		case field.Anonymous && name == "" && target.Kind() == reflect.Struct && !decodesItself(target):
			addMembers(members, target, within)
		case !field.IsExported():
		case name == "":
			members[field.Name] = field.Type
		default:
			members[name] = field.Type
		}
	}
}
