package wire

import (
	"encoding/base64"
	"reflect"
	"strconv"
	"time"
	"unicode/utf8"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// AppendTo appends the JSON body of an SDK output, such as a *dynamodb.PutItemOutput. It omits nil
// fields, but not empty ones. Numbers that are not pointers are always included.
func AppendTo(dst []byte, out any) []byte {
	return appendStructure(dst, reflect.ValueOf(out).Elem())
}

func appendStructure(dst []byte, v reflect.Value) []byte {
	dst = append(dst, '{')
	start := len(dst)
	for _, field := range shapeOf(v.Type()).fields {
		if f := v.Field(field.index); !absent(f) {
			dst = separate(dst, start)
			dst = append(dst, field.name...)
			dst = appendAny(dst, f.Addr().Interface())
		}
	}
	return append(dst, '}')
}

// separate appends a comma before every member except the first, which begins at start.
func separate(dst []byte, start int) []byte {
	if len(dst) > start {
		dst = append(dst, ',')
	}
	return dst
}

func absent(v reflect.Value) bool {
	switch v.Kind() {
	case reflect.Pointer, reflect.Slice, reflect.Map, reflect.Interface:
		return v.IsNil()
	case reflect.String: // an enum
		return v.Len() == 0
	default:
		return false
	}
}

// appendAny appends the value behind source, which is a pointer. The most common types in replies
// need no reflection.
func appendAny(dst []byte, source any) []byte {
	switch source := source.(type) {
	case **string:
		return appendString(dst, **source)
	case *string:
		return appendString(dst, *source)
	case *map[string]types.AttributeValue:
		return appendItem(dst, *source)
	case *[]map[string]types.AttributeValue:
		return appendList(dst, *source, appendItem)
	case *types.AttributeValue:
		return appendAttributeValue(dst, *source)
	case *time.Time:
		return strconv.AppendFloat(dst, float64(source.UnixMilli())/1e3, 'f', 3, 64)
	default:
		return appendReflected(dst, reflect.ValueOf(source).Elem())
	}
}

func appendReflected(dst []byte, v reflect.Value) []byte {
	switch v.Kind() {
	case reflect.Pointer:
		return appendAny(dst, v.Interface())
	case reflect.Struct:
		return appendStructure(dst, v)
	case reflect.Slice:
		return appendSlice(dst, v)
	case reflect.Map:
		return appendMap(dst, v)
	case reflect.String:
		return appendString(dst, v.String())
	case reflect.Bool:
		return strconv.AppendBool(dst, v.Bool())
	case reflect.Int32, reflect.Int64:
		return strconv.AppendInt(dst, v.Int(), 10)
	case reflect.Float64:
		return strconv.AppendFloat(dst, v.Float(), 'f', -1, 64)
	default: // a test checks that no SDK struct has other kinds
		return append(dst, "null"...)
	}
}

func appendSlice(dst []byte, v reflect.Value) []byte {
	dst = append(dst, '[')
	start := len(dst)
	for i := range v.Len() {
		dst = separate(dst, start)
		dst = appendAny(dst, v.Index(i).Addr().Interface())
	}
	return append(dst, ']')
}

func appendMap(dst []byte, v reflect.Value) []byte {
	element := reflect.New(v.Type().Elem())
	dst = append(dst, '{')
	start := len(dst)
	for entries := v.MapRange(); entries.Next(); {
		dst = separate(dst, start)
		dst = appendString(dst, entries.Key().String())
		dst = append(dst, ':')
		element.Elem().Set(entries.Value())
		dst = appendAny(dst, element.Interface())
	}
	return append(dst, '}')
}

func appendList[E any](dst []byte, list []E, appendElement func([]byte, E) []byte) []byte {
	dst = append(dst, '[')
	start := len(dst)
	for _, e := range list {
		dst = separate(dst, start)
		dst = appendElement(dst, e)
	}
	return append(dst, ']')
}

func appendItem(dst []byte, item map[string]types.AttributeValue) []byte {
	dst = append(dst, '{')
	start := len(dst)
	for name, v := range item {
		dst = separate(dst, start)
		dst = appendString(dst, name)
		dst = append(dst, ':')
		dst = appendAttributeValue(dst, v)
	}
	return append(dst, '}')
}

func appendAttributeValue(dst []byte, v types.AttributeValue) []byte {
	switch v := v.(type) {
	case *types.AttributeValueMemberS:
		dst = appendString(append(dst, `{"S":`...), v.Value)
	case *types.AttributeValueMemberN:
		dst = appendString(append(dst, `{"N":`...), v.Value)
	case *types.AttributeValueMemberB:
		dst = appendBinary(append(dst, `{"B":`...), v.Value)
	case *types.AttributeValueMemberBOOL:
		dst = strconv.AppendBool(append(dst, `{"BOOL":`...), v.Value)
	case *types.AttributeValueMemberNULL:
		dst = strconv.AppendBool(append(dst, `{"NULL":`...), v.Value)
	case *types.AttributeValueMemberL:
		dst = appendList(append(dst, `{"L":`...), v.Value, appendAttributeValue)
	case *types.AttributeValueMemberM:
		dst = appendItem(append(dst, `{"M":`...), v.Value)
	case *types.AttributeValueMemberSS:
		dst = appendList(append(dst, `{"SS":`...), v.Value, appendString)
	case *types.AttributeValueMemberNS:
		dst = appendList(append(dst, `{"NS":`...), v.Value, appendString)
	case *types.AttributeValueMemberBS:
		dst = appendList(append(dst, `{"BS":`...), v.Value, appendBinary)
	default:
		return append(dst, "null"...)
	}
	return append(dst, '}')
}

func appendBinary(dst, binary []byte) []byte {
	dst = append(dst, '"')
	dst = base64.StdEncoding.AppendEncode(dst, binary)
	return append(dst, '"')
}

// appendString appends a string with JSON escapes. It replaces bytes that are not UTF-8.
func appendString(dst []byte, s string) []byte {
	const hex = "0123456789abcdef"
	dst = append(dst, '"')
	plain := 0 // start of the text that needs no escape
	for i := 0; i < len(s); {
		c := s[i]
		switch {
		case c == '"' || c == '\\':
			dst = append(dst, s[plain:i]...)
			dst = append(dst, '\\', c)
		case c < ' ':
			dst = append(dst, s[plain:i]...)
			dst = append(dst, '\\', 'u', '0', '0', hex[c>>4], hex[c&15])
		case c < utf8.RuneSelf:
			i++
			continue
		default:
			r, size := utf8.DecodeRuneInString(s[i:])
			if r != utf8.RuneError || size > 1 {
				i += size
				continue
			}
			dst = append(dst, s[plain:i]...)
			dst = append(dst, "\ufffd"...)
		}
		i++
		plain = i
	}
	dst = append(dst, s[plain:]...)
	return append(dst, '"')
}
