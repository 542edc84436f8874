package wire

import (
	"bytes"
	"encoding/base64"
	"math"
	"reflect"
	"strconv"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/millrace-dev/millrace/dynamotest/internal/apierror"
)

// Decode fills an SDK input, such as a *dynamodb.PutItemInput, from the JSON body of a request.
// Errors are SerializationExceptions and ValidationExceptions. A SerializationException has
// priority, because DynamoDB reads the whole body first.
//
// A null counts as missing. An attribute value without a type becomes nil, which the caller must
// refuse. Decode keeps no part of the body.
func Decode(body []byte, into any) error {
	r := &reader{data: body}
	if r.peek() != '{' {
		return apierror.Serialization("Unexpected token received from parser")
	}
	r.structure(reflect.ValueOf(into).Elem())
	r.end()
	if r.err != nil {
		return r.err
	}
	return r.refused
}

// value reads a value into target, which is a pointer. The most common types in requests need no
// reflection.
func (r *reader) value(target any) {
	if r.null() {
		return
	}
	switch target := target.(type) {
	case **string:
		s := r.string()
		*target = &s
	case *string:
		*target = r.string()
	case *map[string]types.AttributeValue:
		*target = r.item()
	case *types.AttributeValue:
		*target = r.attributeValue()
	case *map[string]string:
		*target = r.names()
	case *[]byte:
		*target = r.binary()
	case *time.Time:
		*target = r.time()
	default:
		r.reflected(reflect.ValueOf(target).Elem())
	}
}

func (r *reader) reflected(v reflect.Value) {
	switch v.Kind() {
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		r.value(v.Interface())
	case reflect.Struct:
		r.structure(v)
	case reflect.Slice:
		r.list(v)
	case reflect.Map:
		r.mapping(v)
	case reflect.String: // enums
		v.SetString(r.string())
	case reflect.Bool:
		v.SetBool(r.bool("Boolean"))
	case reflect.Int32:
		v.SetInt(r.integer(32, "Integer"))
	case reflect.Int64:
		v.SetInt(r.integer(64, "Long"))
	case reflect.Float64:
		v.SetFloat(r.float("Double"))
	default:
		r.fail("%s is not supported", v.Type())
	}
}

func (r *reader) structure(v reflect.Value) {
	if r.peek() != '{' {
		r.mismatch("")
		return
	}
	shape := shapeOf(v.Type())
	for r.open(); r.more('}'); {
		name := r.key()
		index, known := shape.index[string(name)]
		if !known {
			r.unknown(name, v.Type().Name())
			continue
		}
		r.value(v.Field(index).Addr().Interface())
	}
}

// unknown refuses a member for which the SDK has no field, so that nothing is ignored silently.
func (r *reader) unknown(name []byte, of string) {
	if r.err == nil {
		r.refuse("dynamotest does not support the parameter %s of %s", name, of)
	}
	r.skip()
}

func (r *reader) list(v reflect.Value) {
	if r.peek() != '[' {
		r.mismatch("")
		return
	}
	v.Set(reflect.MakeSlice(v.Type(), 0, 4))
	for r.open(); r.more(']'); {
		n := v.Len()
		if n == v.Cap() {
			v.Grow(1)
		}
		v.SetLen(n + 1)
		if r.null() && r.err == nil {
			r.refuse("One or more parameter values were invalid: a list of %s has a null", v.Type().Elem().Name())
			continue
		}
		r.value(v.Index(n).Addr().Interface())
	}
}

func (r *reader) mapping(v reflect.Value) {
	if r.peek() != '{' {
		r.mismatch("")
		return
	}
	v.Set(reflect.MakeMap(v.Type()))
	for r.open(); r.more('}'); {
		key := string(r.key())
		element := reflect.New(v.Type().Elem())
		r.value(element.Interface())
		v.SetMapIndex(reflect.ValueOf(key), element.Elem())
	}
}

// names reads a map of strings, such as ExpressionAttributeNames.
func (r *reader) names() map[string]string {
	if r.peek() != '{' {
		r.mismatch("")
		return nil
	}
	names := map[string]string{}
	for r.open(); r.more('}'); {
		key := string(r.key())
		if !r.null() {
			names[key] = r.string()
		} else if r.err == nil {
			r.refuse("One or more parameter values were invalid: %s is null", key)
		}
	}
	return names
}

func (r *reader) string() string {
	if r.peek() != '"' {
		r.mismatch("String")
		return ""
	}
	return string(r.text())
}

// binary reads base64 with padding.
func (r *reader) binary() []byte {
	if r.peek() != '"' {
		r.mismatch("Blob")
		return nil
	}
	text := r.text()
	if len(text)%4 != 0 {
		r.fail("Base64 encoded length is expected a multiple of 4 bytes but found: %d", len(text))
		return nil
	}
	padding := len(text) - len(bytes.TrimRight(text, "="))
	out := make([]byte, base64.StdEncoding.DecodedLen(len(text)))
	n, err := base64.StdEncoding.Strict().Decode(out, text)
	if err != nil || n != len(out)-padding { // the package skips line ends
		r.fail("Invalid Base64 character")
		return nil
	}
	return out[:n]
}

func (r *reader) bool(target string) bool {
	switch r.peek() {
	case 't':
		return r.word("true")
	case 'f':
		r.word("false")
	default:
		r.mismatch(target)
	}
	return false
}

func (r *reader) integer(bits int, target string) int64 {
	text := r.numeral(target)
	n, err := strconv.ParseInt(string(text), 10, bits)
	if err == nil || r.err != nil {
		return n
	}
	f, err := strconv.ParseFloat(string(text), 64) // 5.0 and 5e0 are integers too
	limit := math.Ldexp(1, bits-1)
	if err != nil || f != math.Trunc(f) || f < -limit || f >= limit {
		r.fail("NUMBER_VALUE cannot be converted to %s", target)
		return 0
	}
	return int64(f)
}

func (r *reader) float(target string) float64 {
	text := r.numeral(target)
	f, err := strconv.ParseFloat(string(text), 64)
	if err != nil {
		r.fail("NUMBER_VALUE cannot be converted to %s", target)
	}
	return f
}

// time reads seconds since 1970 with milliseconds in the fraction.
func (r *reader) time() time.Time {
	seconds := r.float("Date")
	return time.UnixMilli(int64(math.Round(seconds * 1000))).UTC()
}

func (r *reader) numeral(target string) []byte {
	if c := r.peek(); c != '-' && (c < '0' || c > '9') {
		r.mismatch(target)
		return nil
	}
	return r.number()
}

// mismatch refuses a value whose type differs from the target. target is empty for structures, maps
// and lists.
func (r *reader) mismatch(target string) {
	c := r.peek()
	switch c {
	case '{':
		r.fail("Start of structure or map found where not expected.")
		return
	case '[':
		r.fail("Start of list found where not expected")
		return
	}
	if r.skip(); r.err != nil {
		return
	}
	switch {
	case target == "":
		r.fail("Unexpected field type")
	case target == "Blob":
		r.fail("only base-64-encoded strings are convertible to bytes")
	case c == '"':
		r.fail("STRING_VALUE cannot be converted to %s", target)
	case c == 't':
		r.fail("TRUE_VALUE cannot be converted to %s", target)
	case c == 'f':
		r.fail("FALSE_VALUE cannot be converted to %s", target)
	default:
		r.fail("NUMBER_VALUE cannot be converted to %s", target)
	}
}
