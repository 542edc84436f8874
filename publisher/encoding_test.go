package publisher_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/internal/storage"
	"github.com/millrace-dev/millrace/internal/testjournal"
	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/publisher"
)

// vault is an encryption with a key that a test can destroy.
type vault struct{ destroyed bool }

func (*vault) Name() string  { return "vault" }
func (*vault) Overhead() int { return 1 }

func (v *vault) Encode(_ context.Context, at journal.Place, payload []byte) ([]byte, bool, error) {
	if v.destroyed {
		return nil, false, fmt.Errorf("%w: of %s", journal.ErrKeyDestroyed, at.Aggregate)
	}
	return append([]byte{'#'}, payload...), true, nil
}

func (v *vault) Decode(_ context.Context, at journal.Place, encoded []byte) ([]byte, error) {
	if v.destroyed {
		return nil, fmt.Errorf("%w: of %s", journal.ErrKeyDestroyed, at.Aggregate)
	}
	return encoded[1:], nil
}

func TestMessagesAreStoredEncodedAndRefusedOnceTheKeyIsDestroyed(t *testing.T) {
	t.Parallel()
	v := &vault{}
	s := newStore(t, journal.Config{Encodings: []journal.Encoding{v}})
	require.NoError(t, s.publisher(publisher.Config{}).Publish("order", messageTo(order1, "a"), messageTo(order1, "b")))
	for r, err := range s.Journal.Internal().Raw().Events(t.Context(), order1, 1, 2) {
		require.NoError(t, err)
		assert.Equal(t, map[uint64]string{1: "#a", 2: "#b"}[r.Number], string(r.Payload))
	}
	v.destroyed = true

	err := s.publisher(publisher.Config{}).Publish("order", messageTo(order1, "c"))

	require.ErrorIs(t, err, journal.ErrKeyDestroyed)
	var failed *publisher.PublishError
	require.ErrorAs(t, err, &failed)
	assert.Equal(t, []int{0}, failed.NotWritten())
	assert.EqualValues(t, 2, s.version(order1))
}

func TestTheStateInTheHeadNeedNotBeReadableToAppend(t *testing.T) {
	t.Parallel()
	s := newStore(t, journal.Config{Encodings: []journal.Encoding{&vault{}}})
	testjournal.Append(t, s.Journal, storage.Commit{
		Aggregate: order1, Events: []storage.Event{{Payload: []byte("a")}}, Snapshot: &journal.Snapshot{Number: 1, Payload: []byte("state")},
	})

	p := s.publisher(publisher.Config{Journal: s.another()}) // without encodings
	require.NoError(t, p.Publish("order", messageTo(order1, "b")))
}
