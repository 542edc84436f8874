package console_test

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/console"
	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/repository"
)

// htmlOf reads a page.
func htmlOf(t *testing.T, c http.Handler, path string) string {
	t.Helper()
	w := httptest.NewRecorder()
	c.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/"+path, http.NoBody))
	require.Equal(t, http.StatusOK, w.Code, "%s: %s", path, w.Body)
	return w.Body.String()
}

func TestAnAggregateWhoseIDIsZeroIsLinked(t *testing.T) {
	t.Parallel()
	j := newJournal(t, journal.Config{})
	save(t.Context(), t, repositoryOf(t, j, repository.Config{}), "0", opened{"ada"})
	c := newConsole(t, console.Config{Journal: j})
	assert.Contains(t, htmlOf(t, c, "aggregates?type=cart"), `href="./aggregate?id=0&amp;type=cart"`)
}
