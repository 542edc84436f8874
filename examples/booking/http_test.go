package main

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/journal"
)

func TestAClientReadsWhatItHasWritten(t *testing.T) {
	t.Parallel()
	w := newWorld(t, journal.Packed, 1)
	w.settings.PaymentPatience = patience // no seat is released meanwhile
	w.grow(2)
	w.schedule(1, 3)
	for _, s := range []string{"A1", "A2", "A3"} {
		status, reply, token, err := send(t.Context(), w.client, http.MethodPost, "/shows/show-0/bookings", nil,
			[]byte(`{"customer": "ada", "seats": ["`+s+`"]}`))
		require.NoError(t, err)
		require.Equal(t, http.StatusAccepted, status, string(reply))
		require.NotEmpty(t, token)
		require.Eventually(t, func() bool { // on a busy machine a view may be late
			status, reply, _, err = send(t.Context(), w.client, http.MethodGet, "/shows/show-0/seats", http.Header{"Consistency-Token": {token}}, nil)
			return err == nil && status != http.StatusServiceUnavailable
		}, patience, time.Millisecond)
		require.Equal(t, http.StatusOK, status, string(reply))
		seats := map[string]string{}
		require.NoError(t, json.Unmarshal(reply, &seats))
		assert.NotEqual(t, "free", seats[s])
	}
}

func TestRequestsThatCannotWorkAreRefused(t *testing.T) {
	t.Parallel()
	w := newWorld(t, journal.Packed, 1)
	w.grow(1)
	w.schedule(1, 1)
	for _, c := range []struct {
		method, path, body string
		status             int
	}{
		{http.MethodPut, "/shows/hamlet", `{`, http.StatusBadRequest},
		{http.MethodPut, "/shows/hamlet", `{"price": 0, "seats": ["A1"]}`, http.StatusBadRequest},
		{http.MethodPut, "/shows/hamlet", `{"price": 1, "seats": [""]}`, http.StatusBadRequest},
		{http.MethodPut, "/shows/hamlet", `{"price": 1}`, http.StatusConflict},
		{http.MethodPut, "/shows/show-0", `{"price": 1, "seats": ["A1"]}`, http.StatusConflict},
		{http.MethodPut, "/shows/" + strings.Repeat("x", 3000), `{"price": 1, "seats": ["A1"]}`, http.StatusBadRequest},
		{http.MethodPost, "/shows/show-0/bookings", `{"seats": ["A1"]}`, http.StatusBadRequest},
		{http.MethodPost, "/shows/show-0/bookings", `{"customer": "ada", "seats": ["Z9"]}`, http.StatusConflict},
		{http.MethodPost, "/shows/hamlet/bookings", `{"customer": "ada", "seats": ["A1"]}`, http.StatusConflict},
	} {
		status, reply, _, err := send(t.Context(), w.client, c.method, c.path, nil, []byte(c.body))
		require.NoError(t, err)
		assert.Equal(t, c.status, status, "%s %s: %s", c.method, c.body, reply)
	}
}

func TestBookingsGoOnWhileThePostIsDown(t *testing.T) {
	t.Parallel()
	w := newWorld(t, journal.Packed, 1)
	w.settings.PaymentPatience = patience // no seat is released meanwhile
	var down atomic.Bool
	down.Store(true)
	w.post.Faults.Before = func(context.Context) error {
		if down.Load() {
			return errors.New("the post is closed")
		}
		return nil
	}
	i := w.Start()
	w.schedule(1, 5)
	for _, s := range []string{"A1", "A2", "A3", "A4", "A5"} {
		status, _ := w.request(http.MethodPost, "/shows/show-0/bookings", s, map[string]any{"customer": "ada", "seats": []string{s}})
		require.Equal(t, http.StatusAccepted, status)
	}
	require.Eventually(t, func() bool {
		_, reply := w.request(http.MethodGet, "/customers/ada/bookings", "", nil)
		return strings.Count(string(reply), `"status":"booked"`) == 5
	}, patience, 10*time.Millisecond, "all are booked")
	mails, _ := w.post.Mails()
	assert.Empty(t, mails)
	down.Store(false)
	require.NoError(t, i.Service.Settle(t.Context()))
	mails, _ = w.post.Mails()
	assert.Len(t, mails, 5)
}
