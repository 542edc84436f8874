package main

import (
	"net"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/console"
	"github.com/millrace-dev/millrace/examples/internal/browsertest"
)

// deployment is a server of a console that is replaced by another one with the same address.
type deployment struct {
	t       *testing.T
	w       *world
	address string
	stop    func()
}

func deploy(t *testing.T, w *world) *deployment {
	t.Helper()
	d := &deployment{t: t, w: w, address: "127.0.0.1:0"}
	d.start()
	t.Cleanup(func() { d.stop() })
	return d
}

func (d *deployment) start() {
	d.t.Helper()
	listener, err := new(net.ListenConfig).Listen(d.t.Context(), "tcp", d.address)
	require.NoError(d.t, err)
	d.address = listener.Addr().String()
	handler, err := console.New(console.Config{Journal: d.w.Journal(), Refresh: time.Second})
	require.NoError(d.t, err)
	server := &http.Server{Handler: handler, ReadHeaderTimeout: patience}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		assert.ErrorIs(d.t, server.Serve(listener), http.ErrServerClosed)
	}()
	d.stop = func() {
		handler.Close()
		assert.NoError(d.t, server.Close())
		<-ended
	}
}

func (d *deployment) page(name string) string { return "http://" + d.address + "/" + name }

func TestALiveTailGoesOnAfterADeployment(t *testing.T) {
	onBoth(t, func(t *testing.T, w *world) {
		d := deploy(t, w)
		ada := chromium.User(t, "Ada")
		ada.Expects("ERR_")
		ada.Open(d.page("tail?topic=order&id=deployed-"))
		ada.Sees("Live", "read units in")
		d.stop()
		ada.Sees("No events since", "Connecting again")
		ada.Sees("The connection was lost.")
		d.start()
		ada.Sees("Live. There was no connection from")
		require.NoError(t, w.order(t.Context(), "deployed-1", Noted{"after the deployment"}))
		ada.Sees("after the deployment")
	})
}

func TestAPageSaysSinceWhenItsServerIsGone(t *testing.T) {
	onBoth(t, func(t *testing.T, w *world) {
		d := deploy(t, w)
		ada, eve, bob := chromium.User(t, "Ada"), chromium.User(t, "Eve"), chromium.User(t, "Bob")
		for user, page := range map[*browsertest.User]string{ada: "groups", eve: "groups", bob: "aggregates"} {
			user.Expects("ERR_")
			user.Open(d.page(page))
			user.SeesNo("not up to date")
		}
		// Her page does not refresh.
		browsertest.Evaluate[any](eve, `{ document.getElementById("refresh").click(); null }`)
		d.stop()
		for _, user := range []*browsertest.User{ada, eve, bob} {
			user.Sees("This page is not up to date: the server has not answered since")
			assert.True(t, browsertest.Evaluate[bool](user, `document.querySelector("#unanswered").getBoundingClientRect().top < document.querySelector("h1").getBoundingClientRect().top`))
		}
		d.start()
		for _, user := range []*browsertest.User{ada, eve, bob} {
			user.SeesNo("not up to date")
		}
	})
}
