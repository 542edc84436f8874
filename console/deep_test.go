package console_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/console"
	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/repository"
)

func TestDeepJSONDoesNotMakeAPageLarge(t *testing.T) {
	t.Parallel()
	j := newJournal(t, journal.Config{})
	r := repositoryOf(t, j, repository.Config{})
	const depth = 5000
	value := json.RawMessage(strings.Repeat("[", depth) + strings.Repeat("]", depth))
	save(t.Context(), t, r, "1", opened{"ada"}, noted{"a", value}, noted{"b", value})
	c := newConsole(t, console.Config{Journal: j, Repositories: []repository.AnyRepository{r}})
	for _, path := range []string{"aggregate?type=cart&id=1", "aggregate?type=cart&id=1&from=3&to=3", "topic?name=cart"} {
		assert.Less(t, len(htmlOf(t, c, path)), 40*depth, path)
		assert.Less(t, len(htmlOf(t, c, "api/"+path)), 40*depth, path)
	}
	v := read[timeline](t, c, "aggregate?type=cart&id=1")
	require.Len(t, v.Events, 3)
	assert.NotEmpty(t, v.Events[0].Payload.Text, "it is shown as it is")
	assert.Contains(t, v.Events[0].State.Withheld, "64 levels")
	assert.NotEmpty(t, v.Events[2].Payload.JSON)
}
