package compare

import (
	"context"
	"reflect"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// Minimise returns a short world that ends with the same kind of difference. It leaves out
// operations and parts of operations as long as the difference stays. If the context ends, it
// returns the best world so far.
func (r *Runner) Minimise(ctx context.Context, d Difference) Difference {
	kind := d.Kind()
	best := d
	best.World.Operations = d.World.Operations[:d.Step+1]

	// attempt keeps the operations if the last of them still makes the difference.
	attempt := func(operations []Operation) bool {
		w := World{Seed: d.World.Seed, Operations: operations, Big: d.World.Big}
		result := NewResult()
		if r.Run(ctx, w, result) != nil {
			return false
		}
		for _, found := range result.Differences {
			if found.Step == len(operations)-1 && found.Kind() == kind {
				best = found
				return true
			}
		}
		return false
	}

	// leaveOut tries to leave out that many consecutive operations, then half as many, down to
	// single ones.
	leaveOut := func(size int) {
		for ; size > 0; size /= 2 {
			for end := len(best.World.Operations) - 1; end > 0; end -= size {
				start := max(0, end-size)
				operations := best.World.Operations
				attempt(append(operations[:start:start], operations[end:]...))
			}
		}
	}

	leaveOut(len(best.World.Operations) / 2)
	for i := len(best.World.Operations) - 1; i >= 0; i-- {
		for changed := true; changed && ctx.Err() == nil; {
			changed = false
			for _, smaller := range smallerInputs(best.World.Operations[i].Input) {
				operations := append([]Operation(nil), best.World.Operations...)
				operations[i].Input = smaller
				if attempt(operations) {
					changed = true
					break
				}
			}
		}
	}
	leaveOut(1) // operations that only a removed part needed
	return best
}

// smallerInputs returns copies of the input, each without one of its parts.
func smallerInputs(input any) []any {
	var out []any
	for _, v := range smaller(reflect.ValueOf(input).Elem()) {
		p := reflect.New(v.Type())
		p.Elem().Set(v)
		out = append(out, p.Interface())
	}
	return out
}

func smaller(v reflect.Value) []reflect.Value {
	var out []reflect.Value
	with := func(change func(copied reflect.Value)) {
		copied := reflect.New(v.Type()).Elem()
		copied.Set(v)
		change(copied)
		out = append(out, copied)
	}
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			if !v.Type().Field(i).IsExported() || v.Field(i).IsZero() {
				continue
			}
			with(func(copied reflect.Value) { copied.Field(i).SetZero() })
			for _, sub := range smaller(v.Field(i)) {
				with(func(copied reflect.Value) { copied.Field(i).Set(sub) })
			}
		}
	case reflect.Pointer:
		if v.IsNil() || v.Elem().Kind() != reflect.Struct {
			break
		}
		for _, sub := range smaller(v.Elem()) {
			p := reflect.New(v.Type().Elem())
			p.Elem().Set(sub)
			out = append(out, p)
		}
	case reflect.Interface:
		value, ok := v.Interface().(types.AttributeValue)
		if !ok {
			break
		}
		switch value.(type) {
		case *types.AttributeValueMemberL, *types.AttributeValueMemberM, *types.AttributeValueMemberSS, *types.AttributeValueMemberNS, *types.AttributeValueMemberBS:
			for _, sub := range smaller(v.Elem()) {
				with(func(copied reflect.Value) { copied.Set(sub) })
			}
		}
	case reflect.Slice:
		if v.Type().Elem().Kind() == reflect.Uint8 {
			break
		}
		for i := range v.Len() {
			without := reflect.MakeSlice(v.Type(), 0, v.Len())
			without = reflect.AppendSlice(without, v.Slice(0, i))
			out = append(out, reflect.AppendSlice(without, v.Slice(i+1, v.Len())))
		}
		for i := range v.Len() {
			for _, sub := range smaller(v.Index(i)) {
				list := reflect.MakeSlice(v.Type(), v.Len(), v.Len())
				reflect.Copy(list, v)
				list.Index(i).Set(sub)
				out = append(out, list)
			}
		}
	case reflect.Map:
		for _, key := range v.MapKeys() {
			out = append(out, copyMap(v, key, reflect.Value{}))
		}
		for _, key := range v.MapKeys() {
			for _, sub := range smaller(v.MapIndex(key)) {
				out = append(out, copyMap(v, key, sub))
			}
		}
	}
	return out
}

// copyMap returns the map with another value for the key, or without the key.
func copyMap(m, key, value reflect.Value) reflect.Value {
	out := reflect.MakeMapWithSize(m.Type(), m.Len())
	for _, k := range m.MapKeys() {
		out.SetMapIndex(k, m.MapIndex(k))
	}
	out.SetMapIndex(key, value)
	return out
}
