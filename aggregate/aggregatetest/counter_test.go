package aggregatetest_test

import (
	"bytes"
	"encoding/gob"
	"encoding/json"
	"errors"
	"slices"
	"sync/atomic"

	"github.com/millrace-dev/millrace/aggregate"
)

// Counter is an aggregate whose events and state can have each fault that a scenario detects.

type Counter struct {
	Kept    int
	Lost    int   `json:"-"`
	Omitted []int `json:",omitempty"`
	Free    any
}

var Counters = aggregate.Define[Counter]("counter", did{}, lossy{}, free{}, oneWay{}, kept{})

var draws atomic.Int64

// draw returns another number each time, as a clock or a random source does.
func draw() int { return int(draws.Add(1)) }

func count(events ...aggregate.Event[Counter]) aggregate.Decision[Counter] {
	return func(Counter) (aggregate.Events[Counter], error) { return events, nil }
}

type did struct{ What string }

func (did) EventType() string { return "did.v1" }

func (e did) Apply(c *Counter) {
	switch e.What {
	case "lose":
		c.Lost = 1
	case "spoil":
		c.Free = func() {}
	case "draw":
		c.Kept = draw()
	case "empty":
		c.Omitted = []int{}
	case "look":
		if c.Omitted == nil {
			c.Kept = 99
		}
	case "panic":
		panic("a bug in the domain code")
	}
}

type kept struct{ N int }

func (kept) EventType() string  { return "kept.v1" }
func (e kept) Apply(c *Counter) { c.Kept = e.N }

type lossy struct {
	Kept int
	Lost int `json:"-"`
}

func (lossy) EventType() string { return "lossy.v1" }
func (lossy) Apply(*Counter)    {}

type free struct{ Free any }

func (free) EventType() string { return "free.v1" }
func (free) Apply(*Counter)    {}

type oneWay struct{}

func (oneWay) EventType() string            { return "one-way.v1" }
func (oneWay) Apply(*Counter)               {}
func (oneWay) MarshalJSON() ([]byte, error) { return []byte(`{}`), nil }
func (*oneWay) UnmarshalJSON([]byte) error  { return errors.New("no way back") }

// rogue is an event that no definition has.
type rogue struct{}

func (rogue) EventType() string { return "rogue.v1" }
func (rogue) Apply(*Wallet)     {}

// reversedJSON is a codec that cannot decode the bytes that it writes.
type reversedJSON struct{}

func (reversedJSON) Marshal(v any) ([]byte, error) {
	data, err := json.Marshal(v)
	slices.Reverse(data)
	return data, err
}

func (reversedJSON) Unmarshal(data []byte, v any) error {
	data = slices.Clone(data)
	slices.Reverse(data)
	return json.Unmarshal(data, v)
}

// gobCodec is a codec whose bytes are not text.
type gobCodec struct{}

func (gobCodec) Marshal(v any) ([]byte, error) {
	var buffer bytes.Buffer
	err := gob.NewEncoder(&buffer).Encode(v)
	return buffer.Bytes(), err
}

func (gobCodec) Unmarshal(data []byte, v any) error {
	return gob.NewDecoder(bytes.NewReader(data)).Decode(v)
}
