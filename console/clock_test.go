package console_test

import (
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/console"
	"github.com/millrace-dev/millrace/internal/testdb"
	"github.com/millrace-dev/millrace/internal/testjournal"
	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/repository"
)

func TestAnEventWithATimeThatJSONCannotSayIsShown(t *testing.T) {
	t.Parallel()
	testjournal.EachLayout(t, func(t *testing.T, layout journal.Layout) {
		client := testdb.Client(t)
		require.NoError(t, journal.Create(t.Context(), client, journal.Config{Layout: layout, Shards: 1}))
		ahead := testjournal.Open(t, client, journal.Config{
			Now: func() time.Time { return time.Date(12000, 1, 1, 0, 0, 0, 0, time.UTC) },
		})
		save(t.Context(), t, repositoryOf(t, ahead, repository.Config{}), "1", opened{"ada"})
		j := testjournal.Open(t, client, journal.Config{})
		c := newConsole(t, console.Config{Journal: j, Topics: []string{"cart"}})
		v := read[timeline](t, c, "aggregate?type=cart&id=1")
		require.Len(t, v.Events, 1)
		assert.Equal(t, 9999, v.Events[0].At.Year())
		get(t, c, "")
		server := httptest.NewServer(c)
		t.Cleanup(server.Close)
		messages, _ := follow(t, server.URL+"/stream?topic=cart&format=json")
		assert.Equal(t, []uint64{1}, numbers(t, messages, 1))
	})
}
