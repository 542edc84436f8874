package console_test

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/catalogue"
	"github.com/millrace-dev/millrace/console"
	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/repository"
)

func TestTheTypeOfAnEventLinksToItsSchema(t *testing.T) {
	t.Parallel()
	j := newJournal(t, journal.Config{})
	save(t.Context(), t, repositoryOf(t, j, repository.Config{}), "1", opened{"ada"}, noted{"a", 1})
	described := aggregate.Define[cart]("cart", opened{}, added{}).WithUpcasters(aggregate.Rename("cart.begun", "cart.opened"))
	schemas, err := catalogue.New(catalogue.Config{Definitions: []aggregate.AnyDefinition{described}})
	require.NoError(t, err)
	c := newConsole(t, console.Config{Journal: j, Catalogue: schemas})

	const address = `<a href="./schema?event_type=cart.opened&amp;type=cart">cart.opened</a>`
	page := htmlOf(t, c, "aggregate?type=cart&id=1")
	assert.Contains(t, page, address)
	assert.Contains(t, page, `<span class="name">cart.noted</span>`, "the catalogue lacks it")
	assert.Contains(t, htmlOf(t, c, "topic?name=cart"), address)

	type events struct{ Events []struct{ Schema string } }
	timeline := read[events](t, c, "aggregate?type=cart&id=1")
	require.Len(t, timeline.Events, 2)
	assert.Empty(t, timeline.Events[0].Schema)
	type schemaOf struct {
		Type      string
		EventType string `json:"event_type"`
		Upcast    bool
		UpcastTo  []string `json:"upcast_to"`
		Schema    map[string]any
	}
	s := read[schemaOf](t, c, timeline.Events[1].Schema)
	assert.Equal(t, "object", s.Schema["type"])
	assert.Equal(t, schemaOf{Type: "cart", EventType: "cart.opened", Schema: s.Schema}, s)

	assert.Contains(t, htmlOf(t, c, "schema?type=cart&event_type=cart.opened"), "&#34;owner&#34;: {")
	assert.Contains(t, htmlOf(t, c, "schema?type=cart&event_type=cart.begun"),
		`An upcaster reads stored events as <a href="./schema?event_type=cart.opened&amp;type=cart">cart.opened</a>. The schema describes what it reads.`)
	r, status := ask(t, c, "schema?type=cart&event_type=cart.noted")
	assert.Equal(t, http.StatusNotFound, status)
	assert.Equal(t, "The catalogue lacks the event type cart.noted of aggregate type cart.", r.Error)
}

func TestAConsoleWithoutACatalogueHasNoSchemas(t *testing.T) {
	t.Parallel()
	j := newJournal(t, journal.Config{})
	save(t.Context(), t, repositoryOf(t, j, repository.Config{}), "1", opened{"ada"})
	c := newConsole(t, console.Config{Journal: j})
	assert.NotContains(t, htmlOf(t, c, "aggregate?type=cart&id=1"), "./schema")
	r, status := ask(t, c, "schema?type=cart&event_type=cart.opened")
	assert.Equal(t, http.StatusNotFound, status)
	assert.Equal(t, "The console has no catalogue: set Config.Catalogue.", r.Error)
}
