package engine

import (
	"hash/maphash"
	"reflect"
)

var digestSeed = maphash.MakeSeed()

// digestOf is the same for equal values. Maps have no order, so that of their members does not count.
func digestOf(v any) uint64 {
	var h maphash.Hash
	h.SetSeed(digestSeed)
	digest(&h, reflect.ValueOf(v))
	return h.Sum64()
}

func digest(h *maphash.Hash, v reflect.Value) {
	switch v.Kind() {
	case reflect.Pointer, reflect.Interface:
		if v.IsNil() {
			_ = h.WriteByte(0)
			return
		}
		_, _ = h.WriteString(v.Elem().Type().Name()) // tells the types of attribute values apart
		digest(h, v.Elem())
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				digest(h, v.Field(i))
			}
		}
	case reflect.Slice:
		maphash.WriteComparable(h, v.Len())
		if v.Type().Elem().Kind() == reflect.Uint8 {
			_, _ = h.Write(v.Bytes())
			return
		}
		for i := range v.Len() {
			digest(h, v.Index(i))
		}
	case reflect.Map:
		var sum uint64
		for members := v.MapRange(); members.Next(); {
			var member maphash.Hash
			member.SetSeed(digestSeed)
			digest(&member, members.Key())
			digest(&member, members.Value())
			sum += member.Sum64()
		}
		maphash.WriteComparable(h, v.Len())
		maphash.WriteComparable(h, sum)
	case reflect.String:
		maphash.WriteComparable(h, v.Len())
		_, _ = h.WriteString(v.String())
	case reflect.Bool:
		maphash.WriteComparable(h, v.Bool())
	default:
		maphash.WriteComparable(h, v.Int())
	}
}
