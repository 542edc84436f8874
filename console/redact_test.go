package console_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/console"
	"github.com/millrace-dev/millrace/internal/storage"
	"github.com/millrace-dev/millrace/internal/testjournal"
	"github.com/millrace-dev/millrace/journal"
)

func TestIdsThatWereRedactedAreNotShownInAnotherPlace(t *testing.T) {
	t.Parallel()
	j := newJournal(t, journal.Config{})
	metadata := aggregate.Metadata{aggregate.CorrelationIDKey: "ada@example.com", aggregate.CausationIDKey: "ada@example.com", "kept": "yes"}
	testjournal.Append(t, j, storage.Commit{
		Aggregate: aggregate.ID{Type: "cart", Value: "1"}, Events: []storage.Event{{ID: "1", Type: "cart.opened", Payload: []byte("1"), Metadata: metadata}},
	})
	c := newConsole(t, console.Config{Journal: j, Redact: func(p console.Payload) []byte {
		if p.Kind == console.MetadataPayload {
			return []byte(`{"kept":"yes"}`)
		}
		return p.Data
	}})
	for _, path := range []string{"aggregate?type=cart&id=1", "topic?name=cart"} {
		for _, page := range []string{htmlOf(t, c, path), htmlOf(t, c, "api/"+path)} {
			assert.NotContains(t, page, "ada@example.com")
			assert.Contains(t, page, "kept")
		}
	}
}
