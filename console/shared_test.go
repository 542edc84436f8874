package console_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/console"
	"github.com/millrace-dev/millrace/dynamotest"
	"github.com/millrace-dev/millrace/internal/testdb"
	"github.com/millrace-dev/millrace/internal/testjournal"
	"github.com/millrace-dev/millrace/journal"
)

func TestAReadThatFailedIsNotShownToLaterVisitors(t *testing.T) {
	t.Parallel()
	testdb.WithFakeTime(t, func(t *testing.T) {
		db := dynamotest.New(t)
		j := testjournal.New(t, db.Client(), journal.Config{Layout: journal.Classic, Shards: 1})
		c := newConsole(t, console.Config{Journal: j, Refresh: time.Hour})
		outage := db.Inject(dynamotest.Throttle())
		_, status := ask(t, c, "groups")
		require.Equal(t, http.StatusServiceUnavailable, status)
		outage.Remove()
		_, status = ask(t, c, "groups")
		require.Equal(t, http.StatusOK, status)
	})
}

func TestAVisitorWhoHasActedSharesTheReadsOfOthers(t *testing.T) {
	t.Parallel()
	db := dynamotest.New(t)
	j := testjournal.New(t, db.Client(), journal.Config{Layout: journal.Classic, Shards: 1})
	c := newConsole(t, console.Config{Journal: j, Topics: []string{"cart"}, Refresh: time.Hour})
	get(t, c, "topic?name=cart")
	db.Inject(dynamotest.Throttle())
	_, status := ask(t, c, "topic?done=x&name=cart")
	assert.Equal(t, http.StatusOK, status)
}
