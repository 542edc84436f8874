package diff

import (
	"math/big"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

type status int

func (s status) String() string { return [...]string{"open", "paid"}[s] }

func TestValuesAreShownAsCode(t *testing.T) {
	t.Parallel()

	at := time.Date(2024, 1, 2, 3, 4, 5, 0, time.UTC)
	one, circle := 1, &node{name: "a"}
	circle.next = circle
	for want, v := range map[string]any{
		`nil`:                                            nil,
		`diff.send{}`:                                    send{},
		`&diff.send{To: "a", Total: 1}`:                  &send{"a", 1},
		`[]diff.send{{To: "a"}, {}}`:                     []send{{To: "a"}, {}},
		`[]*diff.send{&{To: "a"}, nil}`:                  []*send{{To: "a"}, nil},
		`[]interface {}{diff.send{}, 1, "a"}`:            []any{send{}, 1, "a"},
		`map[string]diff.send{"a": {Total: 1}, "b": {}}`: map[string]send{"b": {}, "a": {Total: 1}},
		`diff.record{At: 2024-01-02 03:04:05 +0000 UTC, at: 2024-01-02 03:04:05 +0000 UTC, Free: 7, Ptr: &1}`: record{At: at, at: at, Free: 7, Ptr: &one},
		`diff.record{Func: a func()}`: record{Func: func() {}},
		`1m0s`:                        time.Minute,
		`paid`:                        status(1),
		`12345`:                       *big.NewInt(12345),
		`[]uint8("{}")`:               []byte("{}"),
		`[]uint8{255}`:                []byte{255},
	} {
		assert.Equal(t, want, Show(v))
	}
	assert.Contains(t, Show(circle), "...", "a cycle ends")
	assert.Contains(t, Show(status(7)), "PANIC", "a String that panics ends nothing")
}
