package sim

import (
	"bytes"
	"io"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/dynamotest"
	"github.com/millrace-dev/millrace/internal/storage"
	"github.com/millrace-dev/millrace/internal/testjournal"
	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/journal/archive"
)

// library returns a world in which an aggregate of three events was exported.
func library(t *testing.T) *world {
	t.Helper()
	client := dynamotest.Open().Client()
	j := testjournal.New(t, client, journal.Config{Layout: journal.Classic, Shards: 1})
	p := &plan{disruption: disruptionPlan{kinds: []Disruption{Exports}}}
	w := &world{journal: j, plan: p, oracle: newOracle(newTrace(io.Discard))}
	id, ids := aggregate.ID{Type: "order", Value: "a0"}, []string{"e1", "e2", "e3"}
	commit := storage.Commit{Aggregate: id, Snapshot: snapshotAt(3)}
	for i, event := range ids {
		commit.Events = append(commit.Events, storage.Event{ID: event, Type: eventType(uint64(i + 1)), Payload: p.payload(event)})
	}
	testjournal.Append(t, j, commit)
	w.oracle.committed("w1", streamOf(id), 3, ids)
	w.archive(t)
	return w
}

// archive exports the journal.
func (w *world) archive(t *testing.T) {
	t.Helper()
	var text bytes.Buffer
	_, err := archive.Export(t.Context(), w.journal, &text, archive.ExportOptions{})
	require.NoError(t, err)
	w.exported = append(w.exported, exported{text: text.Bytes(), due: w.oracle.acknowledgedBy(w.oracle.trace.now())})
}

func (w *world) findings(t *testing.T) (texts []string) {
	t.Helper()
	require.NoError(t, w.inspectArchives(t.Context()))
	for _, f := range w.oracle.findings {
		assert.Equal(t, Archived, f.Kind)
		texts = append(texts, f.Text)
	}
	return texts
}

func TestTheOracleFindsNothingInAnArchiveThatHasAll(t *testing.T) {
	t.Parallel()
	assert.Empty(t, library(t).findings(t))
}

func TestTheOracleFindsNothingInAnArchiveFromAPlaceOfTruncationOn(t *testing.T) {
	t.Parallel()
	w := library(t)
	id := aggregate.ID{Type: "order", Value: "a0"}
	require.True(t, w.keep(t.Context(), id, 2))
	w.oracle.remove(streamOf(id), 3)
	require.NoError(t, w.journal.Truncate(t.Context(), id, 3, journal.RemoveOptions{}))
	w.archive(t)
	assert.Empty(t, w.findings(t))
	w.oracle.retract(streamOf(id), 3)
	assert.Equal(t, []string{"an archive of :order/a0 is truncated before #3, which was not requested"}, w.findings(t))
}

func TestTheOracleFindsWhatIsWrongWithAnArchive(t *testing.T) {
	t.Parallel()
	s := stream{topic: "order", id: "a0"}
	for finds, spoil := range map[string]func(*world){
		"an archive has 3 events of :order/a0, and 4 were acknowledged before": func(w *world) { w.exported[0].due[s] = 4 },
		"an archive has 0 events of :order/a1, and 1 were acknowledged before": func(w *world) {
			w.exported[0].due[stream{topic: "order", id: "a1"}] = 1
		},
		"and the event that was acknowledged is other": func(w *world) { w.oracle.acknowledged[s].ids[1] = "other" },
		"an archive cannot be read: it is complete up": func(w *world) { w.exported[0].text = w.exported[0].text[:900] },
	} {
		t.Run(finds, func(t *testing.T) {
			t.Parallel()
			w := library(t)
			spoil(w)
			got := w.findings(t)
			require.Len(t, got, 1)
			assert.Contains(t, got[0], finds)
		})
	}
}

func TestAnEventOfAnArchiveIsComparedToTheByte(t *testing.T) {
	t.Parallel()
	w := library(t)
	history, err := w.history(t.Context(), aggregate.ID{Type: "order", Value: "a0"})
	require.NoError(t, err)
	chapters, err := w.read(w.exported[0])
	require.NoError(t, err)
	s := stream{topic: "order", id: "a0"}
	for _, spoil := range []func(*journal.Record){
		func(r *journal.Record) { r.Payload = []byte(`{"id":"e2"} `) },
		func(r *journal.Record) { r.EventID = "e4" },
		func(r *journal.Record) { r.CommitID = "other" },
		func(r *journal.Record) { r.OccurredAt = r.OccurredAt.Add(1e6) },
		func(r *journal.Record) { r.Metadata = aggregate.Metadata{"a": "b"} },
	} {
		spoiled := *history[1]
		spoil(&spoiled)
		w.oracle.findings = nil
		w.compare(s, chapters[s], []*journal.Record{history[0], &spoiled, history[2]})
		assert.Len(t, w.oracle.findings, 1)
	}
}

func TestADiskGetsFull(t *testing.T) {
	t.Parallel()
	d := &disk{file: &bytes.Buffer{}, left: 5}
	n, err := d.Write([]byte("abc"))
	require.NoError(t, err)
	assert.Equal(t, 3, n)
	n, err = d.Write([]byte("def"))
	require.ErrorIs(t, err, errDiskFull)
	assert.Equal(t, 2, n)
	assert.Equal(t, "abcde", d.file.String())
}
