package catalogue

import (
	"reflect"

	"github.com/millrace-dev/millrace/forward"
	"github.com/millrace-dev/millrace/publisher"
)

// Forwarded returns the channels of the messages that a forward.Forwarder with these mappings
// sends: one for each topic, in the order of the mappings. It needs no broker. The messages have
// the names of publisher.EventName, and are JSON; change them if the marshaler of the Forwarder
// differs. A mapping whose function returns several types is one message that can be any JSON.
func Forwarded(mappings ...forward.Mapping) (channels []Channel) {
	places := map[string]int{}
	type version struct {
		topic string
		of    Message
	}
	seen := map[version]bool{}
	for _, mapping := range mappings {
		m := mapping.Describe()
		message := Message{Name: messageName(m.Type), Version: m.Version, Type: m.Type}
		if seen[version{m.Topic, message}] {
			continue // of another event
		}
		seen[version{m.Topic, message}] = true
		place, known := places[m.Topic]
		if !known {
			place = len(channels)
			places[m.Topic] = place
			channels = append(channels, Channel{Name: m.Topic})
		}
		channels[place].Messages = append(channels[place].Messages, message)
	}
	return channels
}

func messageName(t reflect.Type) string {
	if t == nil {
		return "" // of a mapping that forward.New refuses
	}
	switch t.Kind() {
	case reflect.Interface:
		return t.String()
	case reflect.Pointer:
		return publisher.EventName(reflect.New(t.Elem()).Interface())
	}
	return publisher.EventName(reflect.Zero(t).Interface())
}
