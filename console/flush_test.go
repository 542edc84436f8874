package console_test

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/millrace-dev/millrace/console"
	"github.com/millrace-dev/millrace/journal"
)

func TestATailBehindAMiddlewareThatCannotFlushSaysSo(t *testing.T) {
	t.Parallel()
	c := newConsole(t, console.Config{Journal: newJournal(t, journal.Config{})})
	w := httptest.NewRecorder()
	http.TimeoutHandler(c, time.Minute, "late").ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/stream?topic=cart", http.NoBody))
	assert.Equal(t, http.StatusInternalServerError, w.Code)
	assert.Contains(t, w.Body.String(), "cannot send live tails")
}
