package console_test

import (
	"net/http"
	"net/url"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/console"
	"github.com/millrace-dev/millrace/internal/testjournal"
	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/repository"
)

// timeline has the fields of the document of an aggregate that tests check.
type timeline struct {
	Version, From, To, Newer, Older uint64
	NoStates                        string `json:"no_states"`
	Failed                          string
	DeletedAt                       *time.Time `json:"deleted_at"`
	TruncatedBefore                 uint64     `json:"truncated_before"`
	Snapshot                        *struct {
		Number uint64
		State  *payload
	}
	Events []struct {
		Number        uint64
		At            time.Time
		EventType     string `json:"event_type"`
		CorrelationID string `json:"correlation_id"`
		CausedBy      uint64 `json:"caused_by"`
		Causes        []uint64
		Payload       payload
		State         *payload
		Changes       []struct {
			Path          string
			Before, After any
		}
		Metadata map[string]string
	}
}

type payload struct {
	JSON           any
	Text, Withheld string
	Bytes          int
	Cut            bool
}

func TestATimelineHasStatesAndWhatHasChanged(t *testing.T) {
	t.Parallel()
	onLayouts(t, func(t *testing.T, j *journal.Journal) {
		r := repositoryOf(t, j, repository.Config{})
		save(t.Context(), t, r, "c/1", opened{"ada"}, added{line{"tea", 1}}, added{line{"milk", 2}}, noted{"large", 12345678901234567})
		c := newConsole(t, console.Config{Journal: j, Repositories: []repository.AnyRepository{r}})

		v := read[timeline](t, c, "aggregate?type=cart&id=c%2F1")
		require.Len(t, v.Events, 4)
		assert.Equal(t, uint64(4), v.Version)
		assert.Empty(t, v.NoStates)
		assert.Equal(t, "cart.noted", v.Events[0].EventType, "newest first")
		assert.Equal(t, "notes.large", v.Events[0].Changes[0].Path)
		milk := v.Events[1]
		require.Len(t, milk.Changes, 1, "unchanged values are not listed")
		assert.Equal(t, "lines[1]", milk.Changes[0].Path)
		assert.Nil(t, milk.Changes[0].Before)
		assert.Equal(t, map[string]any{"name": "milk", "count": 2.0}, milk.Changes[0].After)
		assert.Equal(t, map[string]any{"line": map[string]any{"name": "milk", "count": 2.0}}, milk.Payload.JSON)
		require.NotNil(t, milk.State)
		assert.Len(t, milk.State.JSON.(map[string]any)["lines"], 2, "a later event must not show in an earlier state")

		one := read[timeline](t, c, "aggregate?type=cart&id=c%2F1&from=2&to=2")
		require.Len(t, one.Events, 1)
		assert.Equal(t, "lines", one.Events[0].Changes[0].Path, "it begins with the state before")
	})
}

func TestAnAggregateIsShownAsOfATime(t *testing.T) {
	t.Parallel()
	testjournal.EachLayout(t, func(t *testing.T, layout journal.Layout) {
		var ticks atomic.Int64
		began := time.Now()
		j := newJournal(t, journal.Config{Layout: layout, Now: func() time.Time { return began.Add(time.Duration(ticks.Add(1)) * time.Millisecond) }})
		save(t.Context(), t, repositoryOf(t, j, repository.Config{}), "1", opened{"ada"}, added{line{"tea", 1}}, added{line{"milk", 1}})
		c := newConsole(t, console.Config{Journal: j})
		all := read[timeline](t, c, "aggregate?type=cart&id=1")
		second := all.Events[1].At.Format(time.RFC3339Nano)

		v := read[timeline](t, c, "aggregate?type=cart&id=1&at="+url.QueryEscape(second))
		assert.Equal(t, uint64(2), v.To)
		before := read[timeline](t, c, "aggregate?type=cart&id=1&at=2001-02-03T04:05")
		assert.Zero(t, before.To)
		assert.Empty(t, before.Events)
		assert.Equal(t, uint64(3), before.Newer)
	})
}

func TestAPanicOfTheApplicationIsShownAndAffectsNoOtherPage(t *testing.T) {
	t.Parallel()
	onLayouts(t, func(t *testing.T, j *journal.Journal) {
		r := repositoryOf(t, j, repository.Config{Snapshots: repository.Never})
		save(t.Context(), t, r, "1", opened{"ada"}, added{line{"tea", 1}})
		broken := testjournal.Repository(t, j, aggregate.Define[struct{ N int }]("cart", breaking{}, alsoBreaking{}), repository.Config{})
		c := newConsole(t, console.Config{Journal: j, Repositories: []repository.AnyRepository{broken}})
		v := read[timeline](t, c, "aggregate?type=cart&id=1")
		assert.Len(t, v.Events, 2)
		assert.Contains(t, v.NoStates, "cannot apply this")

		c = newConsole(t, console.Config{Journal: j, Redact: func(console.Payload) []byte { panic("cannot redact this") }})
		got, status := ask(t, c, "topic?name=cart")
		assert.Equal(t, http.StatusInternalServerError, status)
		assert.Contains(t, got.Error, "cannot redact this")
	})
}

type breaking struct{}

func (breaking) EventType() string      { return "cart.opened" }
func (breaking) Apply(*struct{ N int }) { panic("cannot apply this") }

type alsoBreaking struct{}

func (alsoBreaking) EventType() string      { return "cart.added" }
func (alsoBreaking) Apply(*struct{ N int }) { panic("cannot apply this") }

func TestAPageOfALongHistorySaysWhyItHasNoStates(t *testing.T) {
	t.Parallel()
	onLayouts(t, func(t *testing.T, j *journal.Journal) {
		r := repositoryOf(t, j, repository.Config{Snapshots: repository.Never})
		var events aggregate.Events[cart]
		for i := range 90 {
			events = append(events, added{line{"tea", i}})
		}
		for range 24 {
			testjournal.Execute(t, r, "long", func(cart) (aggregate.Events[cart], error) { return events, nil })
		}
		c := newConsole(t, console.Config{Journal: j, Repositories: []repository.AnyRepository{r}})
		last := get(t, c, "aggregate?type=cart&id=long")
		v := read[timeline](t, c, "aggregate?type=cart&id=long")
		assert.Len(t, v.Events, 25)
		assert.Contains(t, v.NoStates, "2,000")
		assert.Less(t, last.ReadUnits, 20.0)
		assert.Empty(t, read[timeline](t, c, "aggregate?type=cart&id=long&to=1000").NoStates)
	})
}

func TestEventsThatCausedOneAnotherAreLinked(t *testing.T) {
	t.Parallel()
	onLayouts(t, func(t *testing.T, j *journal.Journal) {
		r := repositoryOf(t, j, repository.Config{})
		save(t.Context(), t, r, "1", opened{"ada"})
		var first string
		for record, err := range j.Events(t.Context(), aggregate.ID{Type: "cart", Value: "1"}, 1, 1) {
			require.NoError(t, err)
			first = record.EventID
		}
		ctx := aggregate.ContextWithMetadata(t.Context(), aggregate.Metadata{aggregate.CausationIDKey: first, aggregate.CorrelationIDKey: "c"})
		save(ctx, t, r, "1", added{line{"tea", 1}})
		v := read[timeline](t, newConsole(t, console.Config{Journal: j}), "aggregate?type=cart&id=1")
		assert.Equal(t, uint64(1), v.Events[0].CausedBy)
		assert.Equal(t, "c", v.Events[0].CorrelationID)
		assert.Equal(t, []uint64{2}, v.Events[1].Causes)
	})
}

func TestWithoutARepositoryTheLatestSnapshotIsShown(t *testing.T) {
	t.Parallel()
	onLayouts(t, func(t *testing.T, j *journal.Journal) {
		r := repositoryOf(t, j, repository.Config{Snapshots: repository.Every(2)})
		save(t.Context(), t, r, "1", opened{"ada"}, added{line{"tea", 1}}, added{line{"milk", 1}})
		v := read[timeline](t, newConsole(t, console.Config{Journal: j}), "aggregate?type=cart&id=1")
		require.NotNil(t, v.Snapshot)
		assert.Equal(t, uint64(2), v.Snapshot.Number)
		require.NotNil(t, v.Snapshot.State)
		assert.Equal(t, "ada", v.Snapshot.State.JSON.(map[string]any)["owner"])
		assert.NotEmpty(t, v.NoStates)
	})
}

func TestPayloadsStatesAndMetadataAreHiddenOrRedacted(t *testing.T) {
	t.Parallel()
	onLayouts(t, func(t *testing.T, j *journal.Journal) {
		r := repositoryOf(t, j, repository.Config{Snapshots: repository.Every(1)})
		ctx := aggregate.ContextWithMetadata(t.Context(), aggregate.Metadata{"user": "secret"})
		save(ctx, t, r, "1", opened{"secret"}, added{line{"secret", 1}})
		body := func(config console.Config) string {
			config.Journal = j
			text := ""
			for _, repositories := range [][]repository.AnyRepository{nil, {r}} {
				config.Repositories = repositories
				c := newConsole(t, config)
				for _, path := range []string{"aggregate?type=cart&id=1", "aggregate?type=cart&id=1&from=2&to=2", "topic?name=cart"} {
					text += string(get(t, c, path).Data)
				}
			}
			return text
		}
		assert.Contains(t, body(console.Config{}), "secret")
		assert.NotContains(t, body(console.Config{HidePayloads: true}), "secret")
		kinds := map[console.PayloadKind]bool{}
		assert.NotContains(t, body(console.Config{Redact: func(p console.Payload) []byte {
			kinds[p.Kind] = true
			if p.Kind == console.MetadataPayload {
				return []byte(`{"user":"…"}`)
			}
			return nil
		}}), "secret")
		assert.Equal(t, map[console.PayloadKind]bool{console.EventPayload: true, console.StatePayload: true, console.MetadataPayload: true}, kinds)
	})
}

func TestDeletedAndTruncatedAggregatesAreShownAsSuch(t *testing.T) {
	t.Parallel()
	onLayouts(t, func(t *testing.T, j *journal.Journal) {
		r := repositoryOf(t, j, repository.Config{Snapshots: repository.Every(1)})
		save(t.Context(), t, r, "gone", opened{"ada"})
		require.NoError(t, r.Delete(t.Context(), "gone", 1, journal.RemoveOptions{}))
		save(t.Context(), t, r, "cut", opened{"ada"}, added{line{"tea", 1}}, added{line{"milk", 1}})
		require.NoError(t, r.Truncate(t.Context(), "cut", 3, journal.RemoveOptions{}))
		c := newConsole(t, console.Config{Journal: j, Repositories: []repository.AnyRepository{r}})

		assert.NotNil(t, read[timeline](t, c, "aggregate?type=cart&id=gone").DeletedAt)
		v := read[timeline](t, c, "aggregate?type=cart&id=cut")
		assert.Equal(t, uint64(3), v.TruncatedBefore)
		require.Len(t, v.Events, 1)
		assert.Equal(t, "cart.added", v.Events[0].EventType)
	})
}

func TestAMissingAggregateAndWrongParametersAreExplained(t *testing.T) {
	t.Parallel()
	j := newJournal(t, journal.Config{})
	c := newConsole(t, console.Config{Journal: j})
	for path, status := range map[string]int{
		"aggregate?type=cart&id=1":          http.StatusNotFound,
		"aggregate?type=cart":               http.StatusBadRequest,
		"aggregate?type=a%00b&id=1":         http.StatusBadRequest,
		"aggregates?type=cart&after=forged": http.StatusBadRequest,
		"aggregates?type=a%00b":             http.StatusBadRequest,
		"group?name=g&topic=t":              http.StatusNotFound,
		"behind?name=g&topic=t":             http.StatusNotFound,
		"model?name=m":                      http.StatusNotFound,
		"processes?show=x":                  http.StatusBadRequest,
		"topic?name=":                       http.StatusBadRequest,
		"nothing":                           http.StatusNotFound,
	} {
		r, got := ask(t, c, path)
		assert.Equal(t, status, got, path)
		assert.NotEmpty(t, r.Error, path)
	}
}
