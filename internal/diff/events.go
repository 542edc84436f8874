package diff

import "github.com/millrace-dev/millrace/aggregate"

// Events is the [Kind] of the events of an aggregate. Its Note explains why an event cannot be
// encoded.
func Events[S any](definition aggregate.Definition[S]) Kind {
	return Kind{Noun: "event", Note: func(v any) string {
		event, _ := v.(aggregate.Event[S]) // nil if v is nil
		if _, err := definition.Encode(event); err != nil {
			return err.Error()
		}
		return ""
	}}
}

// Values converts a list of any type to one that [Kind] compares and shows.
func Values[T any](list []T) []any {
	all := make([]any, len(list))
	for i, v := range list {
		all[i] = v
	}
	return all
}
