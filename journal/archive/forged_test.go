package archive_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/internal/storage"
	"github.com/millrace-dev/millrace/internal/testdb"
	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/journal/archive"
)

// An archive that somebody made up, with correct digests, is refused, or it makes aggregates that
// are like any others.
func TestAForgedArchiveIsRefusedOrMakesSoundAggregates(t *testing.T) {
	t.Parallel()
	seed := rand.Uint64()
	for name, config := range map[string]journal.Config{"classic": {}, "packed": packed} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := setup(t, testdb.Client(t), config)
			refused, archives := 0, 100
			if testdb.IsLocal() {
				archives = 25
			}
			for n := range archives {
				f := forger{rand.New(rand.NewPCG(seed, uint64(n)))}
				id := aggregate.ID{Type: "account", Value: fmt.Sprint(n)}
				head, events := f.history(id)
				for range f.IntN(3) {
					events = f.change(head, events)
				}
				text := f.archive(head, events)
				about := fmt.Sprintf("seed %d, archive %d:\n%s", seed, n, text)

				done, err := archive.Import(t.Context(), s.Journal, strings.NewReader(text), archive.ImportOptions{})
				if err != nil {
					refused++
					require.True(t, isTyped(err), "%v\n%s", err, about)
				} else {
					s.requireImported(t, id, head, events, done.SnapshotsLeftOut > 0, about)
					again, err := archive.Import(t.Context(), s.Journal, strings.NewReader(text), archive.ImportOptions{})
					require.NoError(t, err, about)
					require.EqualValues(t, len(events), again.Present, about)
				}
				// An import that ended between two pages may have left a truncated aggregate
				// without its snapshot. It cannot be loaded until an import has ended.
				if err == nil || head["truncated_before"] == nil {
					s.requireUsable(t, id, about)
				}
			}
			s.requireReadableTail(t)
			assert.Greater(t, refused, archives/10)
			assert.Less(t, refused, archives*9/10)
		})
	}
}

func isTyped(err error) bool {
	return errors.Is(err, archive.ErrDamaged) || errors.Is(err, journal.ErrInvalidCommit) ||
		errors.As(err, new(*journal.VersionError)) || errors.As(err, new(*journal.TooLargeError)) || errors.As(err, new(*aggregate.InvalidIDError)) ||
		errors.As(err, new(*archive.HistoryError))
}

// requireImported requires that an export has what the archive had.
func (s store) requireImported(t *testing.T, id aggregate.ID, head fields, events []fields, withoutSnapshot bool, about string) {
	t.Helper()
	heads, got := s.linesOf(t, id, about)
	want := copyOf(head)
	for _, h := range []fields{want, heads} {
		if h["truncated_before"] == uint64(1) || h["truncated_before"] == json.Number("1") {
			delete(h, "truncated_before") // it means the same
		}
		if withoutSnapshot {
			delete(h, "snapshot")
		}
	}
	require.JSONEq(t, jsonOf(want), jsonOf(heads), about)
	require.Len(t, got, len(events), about)
	for i := range events {
		require.JSONEq(t, jsonOf(events[i]), jsonOf(got[i]), about)
	}
}

// requireUsable requires that an aggregate can be read, verified, appended to, exported and
// truncated, if there is one.
func (s store) requireUsable(t *testing.T, id aggregate.ID, about string) {
	t.Helper()
	head, err := s.Head(t.Context(), id)
	if errors.Is(err, journal.ErrNotFound) {
		return
	}
	require.NoError(t, err, about)
	s.requireFaultless(t, id, about)
	_, before := s.linesOf(t, id, about)
	for r, err := range s.Events(t.Context(), id, max(head.TruncatedBefore, 1), head.Version) {
		require.NoError(t, err, about)
		require.Equal(t, id, r.Aggregate, about)
	}

	c := storage.Commit{Aggregate: id, Expected: head.Version, Events: []storage.Event{{Type: "added"}}, Snapshot: stateOf(int(head.Version) + 1)} //nolint:gosec // a test
	receipt, err := s.Journal.Internal().Append(t.Context(), c)
	if !head.DeletedAt.IsZero() {
		require.ErrorAs(t, err, new(*journal.DeletedError), about)
		return
	}
	require.NoError(t, err, about)
	_, after := s.linesOf(t, id, about)
	require.Len(t, after, len(before)+1, about)
	require.Equal(t, before, after[:len(before)], about)
	loaded, err := s.Head(t.Context(), id)
	require.NoError(t, err, about)
	if !errors.Is(receipt.SnapshotError, storage.ErrOldSchema) {
		require.Equal(t, stateOf(int(head.Version)+1), loaded.Snapshot, about) //nolint:gosec // a test
	}
	s.requireFaultless(t, id, about)

	err = s.Truncate(t.Context(), id, head.Version+1, journal.RemoveOptions{})
	if errors.Is(err, journal.ErrNotCovered) {
		return // the snapshot was left out
	}
	require.NoError(t, err, about)
	s.requireFaultless(t, id, about)
	_, left := s.linesOf(t, id, about)
	require.Equal(t, after[len(after)-1:], left, about)
}

// requireReadableTail reads all shards as subscribers do.
func (s store) requireReadableTail(t *testing.T) {
	t.Helper()
	for shard := range s.Shards() {
		query := storage.TailQuery{AggregateType: "account", Shard: shard, Limit: 20}
		for more := true; more; {
			page, err := s.Journal.Internal().TailShard(t.Context(), query)
			require.NoError(t, err)
			require.Empty(t, page.Corrupt)
			query.After, more = page.Next, page.More
		}
	}
}

func (s store) requireFaultless(t *testing.T, id aggregate.ID, about string) {
	t.Helper()
	report, err := archive.Verify(t.Context(), s.Journal, archive.VerifyOptions{Only: archive.Selection{Aggregate: id}})
	require.NoError(t, err, about)
	require.NoError(t, report.Err(), about)
}

// linesOf returns the head and the events of an export.
func (s store) linesOf(t *testing.T, id aggregate.ID, about string) (head fields, events []fields) {
	t.Helper()
	var out bytes.Buffer
	_, err := archive.Export(t.Context(), s.Journal, &out, archive.ExportOptions{Only: archive.Selection{Aggregate: id}})
	require.NoError(t, err, about)
	for text := range strings.Lines(out.String()) {
		line := fields{}
		in := json.NewDecoder(strings.NewReader(text))
		in.UseNumber()
		require.NoError(t, in.Decode(&line), about)
		switch line["kind"] {
		case "head":
			head = line
		case "event":
			events = append(events, line)
		}
	}
	return head, events
}

// fields are those of a line.
type fields map[string]any

func copyOf(f fields) fields {
	c := fields{}
	for k, v := range f {
		c[k] = v
	}
	return c
}

func jsonOf(v any) string {
	text, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return string(text)
}

// forger makes up archives.
type forger struct{ *rand.Rand }

// history returns the lines of an aggregate as an export would write them.
func (f forger) history(id aggregate.ID) (head fields, events []fields) {
	first := 1 + uint64(f.IntN(2)*f.IntN(5))
	n := uint64(1 + f.IntN(8))
	head = fields{"kind": "head", "aggregate": fields{"type": id.Type, "value": id.Value}, "version": first + n - 1}
	if first > 1 {
		head["truncated_before"] = first
		head["snapshot"] = fields{"number": first - 1 + f.Uint64N(n), "schema": 1, "payload": []byte("state")}
	} else if f.IntN(3) == 0 {
		head["snapshot"] = fields{"number": 1 + f.Uint64N(n), "schema": 1, "payload": []byte("state")}
	}
	commit := f.id()
	for i := range n {
		if f.IntN(2) == 0 {
			commit = f.id()
		}
		events = append(events, fields{
			"kind": "event", "number": first + i, "id": f.id(), "type": "changed", "occurred_at": 1_700_000_000_000 + f.Int64N(1000),
			"commit": commit, "payload": []byte{byte(i)},
		})
	}
	return head, events
}

func (f forger) id() string {
	switch f.IntN(3) {
	case 0:
		return fmt.Sprintf("%08x-0000-4000-8000-000000000000", f.Uint32())
	case 1:
		return fmt.Sprintf("%08X-0000-4000-8000-00000000000A", f.Uint32())
	default:
		return fmt.Sprintf("id %d", f.IntN(1000))
	}
}

// text returns no text, that of another event, or one that may confuse a reader.
func (f forger) text(others []fields, name string) string {
	switch f.IntN(3) {
	case 0:
		return ""
	case 1:
		text, _ := others[f.IntN(len(others))][name].(string)
		return text
	}
	return []string{".", "=", "-", "=a", "\x00", "\u009b", " ", "a/b", strings.Repeat("x", 300), "00000000-0000-0000-0000-000000000000"}[f.IntN(10)]
}

func (f forger) number(near uint64) uint64 {
	return []uint64{0, 1, near - 1, near, near + 1, near + 2, 1 << 31, 1 << 53, 1 << 62, math.MaxInt64, math.MaxUint64}[f.IntN(11)]
}

func (f forger) time() int64 {
	return []int64{0, 1, -1, 1 << 40, math.MinInt64, math.MaxInt64, math.MaxInt64 / 1000, 253_402_300_800_000}[f.IntN(8)]
}

// change changes one thing of an archive.
func (f forger) change(head fields, events []fields) []fields {
	version := head["version"].(uint64)
	if len(events) == 0 {
		return events
	}
	i := f.IntN(len(events))
	e := events[i]
	set := func(to fields, name string, value, zero any) {
		if to[name] = value; value == zero {
			delete(to, name)
		}
	}
	switch f.IntN(16) {
	case 0:
		set(head, "version", f.number(version), nil)
	case 1:
		set(head, "truncated_before", f.number(version), uint64(0))
	case 2:
		head["deleted_at"] = f.time()
		if f.IntN(4) > 0 {
			head["truncated_before"] = version + 1
			delete(head, "snapshot")
			return nil
		}
	case 3:
		delete(head, "snapshot")
	case 4:
		head["snapshot"] = fields{"number": f.number(version), "schema": f.number(3), "payload": []byte{}}
		snapshot := head["snapshot"].(fields)
		set(snapshot, "number", snapshot["number"], uint64(0))
		set(snapshot, "schema", snapshot["schema"], uint64(0))
	case 5:
		set(e, "number", f.number(e["number"].(uint64)), uint64(0))
	case 6:
		set(e, "id", f.text(events, "id"), "")
	case 7:
		set(e, "type", f.text(events, "type"), "")
	case 8, 9, 10:
		set(e, "commit", f.text(events, "commit"), "")
	case 11:
		set(e, "occurred_at", f.time(), int64(0))
	case 12:
		delete(e, "payload")
	case 13:
		e["metadata"] = map[string]string{"key " + f.text(events, "id"): f.text(events, "type")}
	case 14:
		return append(events[:i:i], events[i+1:]...)
	case 15:
		double := copyOf(e)
		if f.IntN(2) == 0 { // with the numbers that follow
			head["version"] = version + 1
			for _, later := range events[i:] {
				later["number"] = later["number"].(uint64) + 1
			}
		}
		return append(events[:i:i], append([]fields{double}, events[i:]...)...)
	}
	return events
}

// archive returns the text, with pages of random lengths.
func (f forger) archive(head fields, events []fields) string {
	body := jsonOf(head) + "\n"
	for i, e := range events {
		if i > 0 && f.IntN(4) == 0 {
			body += fmt.Sprintf(`{"kind":"sum","events":%d,"sha256":"%s"}`+"\n", i, digest(body))
		}
		body += jsonOf(e) + "\n"
	}
	return archiveOf(len(events), strings.TrimSuffix(body, "\n"))
}
