package diff

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// Values returns the differences of two values, "" if they are equal. Lines of the first value
// begin with a minus sign, lines of the second one with a plus sign.
func Values(first, second any) (text string) {
	defer func() {
		if reason := recover(); reason != nil {
			// Either a method Equal has panicked, or go-cmp refuses to compare the values. It does
			// so if Equal is not symmetric, and if the key of a map is NaN.
			text = fmt.Sprintf("  %T cannot be compared: %v", first, reason)
		}
	}()
	if reflect.DeepEqual(first, second) {
		return "" // most values of a test are equal, and go-cmp takes much longer
	}
	var found report
	text = strings.TrimSuffix(cmp.Diff(first, second, options, cmp.Reporter(&found)), "\n")
	return spaces.Replace(text) + found.types.String()
}

// spaces makes the text the same in each process. So that no program relies on it, go-cmp writes
// no-break spaces in some.
var spaces = strings.NewReplacer("\u00a0", " ", "\t", "  ")

// options shows values that are a text to their readers as a text, and all others field by field.
var options = cmp.Options{contents(), ofKinds(
	cmp.FilterValues(areTexts, cmp.Comparer(func(x, y any) bool { return cmp.Equal(x, y, contents()) })),
	reflect.Struct, reflect.Pointer,
)}

// contents are the options that decide what counts as equal.
func contents() cmp.Options {
	return cmp.Options{
		cmp.Exporter(func(reflect.Type) bool { return true }),
		ofKinds(cmpopts.EquateEmpty(), reflect.Slice, reflect.Map),
		cmpopts.EquateNaNs(),
		ofKinds(
			cmp.FilterValues(areWithoutContents, cmp.Comparer(areBothNil)),
			reflect.Pointer, reflect.Func, reflect.Chan, reflect.UnsafePointer,
		),
		cmp.FilterPath(isOfRuntime, cmp.Ignore()),
	}
}

// ofKinds applies an option to values of some kinds only. So go-cmp need not ask its filter about
// each other value, which takes most of the time of a comparison.
func ofKinds(option cmp.Option, kinds ...reflect.Kind) cmp.Option {
	return cmp.FilterPath(func(p cmp.Path) bool { return slices.Contains(kinds, p.Last().Type().Kind()) }, option)
}

// areWithoutContents reports whether two values of a type have no contents to compare: one of them
// is a nil pointer, or they are functions or channels.
func areWithoutContents(x, y any) bool {
	a, b := reflect.ValueOf(x), reflect.ValueOf(y)
	if !a.IsValid() || !b.IsValid() || a.Type() != b.Type() {
		return false
	}
	switch a.Kind() {
	case reflect.Pointer:
		return a.IsNil() || b.IsNil()
	case reflect.Func, reflect.Chan, reflect.UnsafePointer:
		return true
	}
	return false
}

// areBothNil reports whether both values are nil, or none is. A nil message counts as an empty one:
// for its getters they are the same, and a codec cannot distinguish them.
func areBothNil(x, y any) bool {
	a, b := reflect.ValueOf(x), reflect.ValueOf(y)
	if a.IsNil() == b.IsNil() || !isMessage(a.Type()) {
		return a.IsNil() == b.IsNil()
	}
	if a.IsNil() {
		a, b = b, a
	}
	return cmp.Equal(a.Interface(), reflect.New(a.Type().Elem()).Interface(), contents())
}

// isOfRuntime reports whether a path leads to a field that the Protocol Buffers runtime changes
// when a message is used.
func isOfRuntime(p cmp.Path) bool {
	f, ok := p.Last().(cmp.StructField)
	return ok && (f.Name() == "state" || f.Name() == "sizeCache") && isMessage(reflect.PointerTo(p.Index(-2).Type()))
}

// isMessage reports whether a type is a pointer to a generated Protocol Buffers message. It looks
// for a method by name, so that tests need not import that module.
func isMessage(t reflect.Type) bool {
	if t.Kind() != reflect.Pointer {
		return false
	}
	_, ok := t.MethodByName("ProtoReflect")
	return ok
}

// report is what a comparison finds.
type report struct {
	same, different int             // parts of the values that cannot be divided further
	types           strings.Builder // lines about types that the text of go-cmp does not show
	path            cmp.Path
}

func (r *report) PushStep(step cmp.PathStep) { r.path = append(r.path, step) }
func (r *report) PopStep()                   { r.path = r.path[:len(r.path)-1] }

func (r *report) Report(result cmp.Result) {
	if result.Equal() {
		r.same++
		return
	}
	r.different++
	first, second := r.path.Last().Values()
	if first.Kind() != reflect.Interface || first.IsNil() || second.Kind() != reflect.Interface || second.IsNil() {
		return
	}
	_, isText := first.Interface().(fmt.Stringer)
	if _, alsoText := second.Interface().(fmt.Stringer); isText || alsoText {
		fmt.Fprintf(&r.types, "\n- type of %[1]s: %[2]v\n+ type of %[1]s: %[3]v", r.path, first.Elem().Type(), second.Elem().Type())
	}
}

// areTexts reports whether two values of a type, such as *big.Int, have a method String and export
// no fields. Go-cmp itself treats values with a method Equal so.
func areTexts(x, y any) bool {
	t := reflect.TypeOf(x)
	if _, ok := x.(fmt.Stringer); !ok || t != reflect.TypeOf(y) || areWithoutContents(x, y) {
		return false
	}
	if _, ok := t.MethodByName("Equal"); ok {
		return false
	}
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	return t.Kind() == reflect.Struct && closed(t)
}
