package aggregate_test

import (
	"encoding/json"
	"testing"

	"github.com/millrace-dev/millrace/aggregate"
)

// Each benchmark is compared with the same work done by encoding/json, for a Go type that is known
// beforehand.

func BenchmarkEncode(b *testing.B) {
	b.Run("definition", func(b *testing.B) {
		b.ReportAllocs()
		var event aggregate.Event[Account] = Deposited{100}
		for b.Loop() {
			if _, err := Accounts.Encode(event); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("json", func(b *testing.B) {
		b.ReportAllocs()
		var event aggregate.Event[Account] = Deposited{100}
		for b.Loop() {
			if _, err := json.Marshal(event); err != nil {
				b.Fatal(err)
			}
		}
	})
}

func BenchmarkDecode(b *testing.B) {
	deposited, tagged := []byte(`{"Amount":100}`), []byte(`{"Tag":"vip"}`)
	b.Run("definition/value", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := Accounts.Decode("account.deposited.v1", deposited); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("json/value", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			var event Deposited
			if err := json.Unmarshal(deposited, &event); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("definition/pointer", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := Accounts.Decode("account.tagged.v1", tagged); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("json/pointer", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			var event Tagged
			if err := json.Unmarshal(tagged, &event); err != nil {
				b.Fatal(err)
			}
		}
	})
}

func TestDecodeAllocatesAtMostOnceMoreThanEncodingJSON(t *testing.T) { //nolint:paralleltest // counts allocations
	payload := []byte(`{"Amount":100}`)
	bare := testing.AllocsPerRun(100, func() {
		var event Deposited
		if err := json.Unmarshal(payload, &event); err != nil {
			t.Fatal(err)
		}
	})
	ours := testing.AllocsPerRun(100, func() {
		if _, err := Accounts.Decode("account.deposited.v1", payload); err != nil {
			t.Fatal(err)
		}
	})
	if ours > bare+1 {
		t.Errorf("Decode makes %v allocations, json.Unmarshal %v: the copy out of the pointer is the only one it may add", ours, bare)
	}
}

func BenchmarkReplay(b *testing.B) {
	payload := []byte(`{"Amount":100}`)
	for name, eventType := range map[string]string{"current": "account.deposited.v1", "upcast": "account.deposited.v0b", "renamed": "account.taken.v0"} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			var state Account
			for b.Loop() {
				if err := evolved.Replay(&state, eventType, payload); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func TestReplayOfACurrentEventAllocatesNoMoreThanDecode(t *testing.T) { //nolint:paralleltest // counts allocations
	payload := []byte(`{"Amount":100}`)
	decode := testing.AllocsPerRun(100, func() {
		if _, err := Accounts.Decode("account.deposited.v1", payload); err != nil {
			t.Fatal(err)
		}
	})
	for name, definition := range map[string]aggregate.Definition[Account]{"without upcasters": Accounts, "with some": evolved} {
		var state Account
		replay := testing.AllocsPerRun(100, func() {
			if err := definition.Replay(&state, "account.deposited.v1", payload); err != nil {
				t.Fatal(err)
			}
		})
		if replay > decode {
			t.Errorf("%s, Replay makes %v allocations, Decode %v", name, replay, decode)
		}
	}
}
