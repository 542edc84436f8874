package live

import (
	"context"
	"crypto/sha256"
	"fmt"
	"math/rand/v2"
	"net/http"
	"time"

	"github.com/ThreeDotsLabs/watermill"

	"github.com/millrace-dev/millrace/internal/printable"
)

// Serve streams the results of query as server-sent events. It calls query at once, after each
// change that concerns the key, and every [Config].RefreshInterval. An [Update] with an ID is sent
// only if it differs from the last one.
//
// Serve returns nil when the client disconnects, when a write takes longer than
// [Config].WriteTimeout, after an [Update] with Last, and when the feed ends. The end of the feed
// also ends the contexts of all queries except the first.
//
// If the first query fails, Serve returns its error and has written nothing, so the caller can
// reply with a status. A browser's EventSource does not reconnect after a status other than 200. If
// a later query fails, Serve logs the error and ends the stream, and the client reconnects.
//
// The writer must support flushing. A writer that a middleware has wrapped needs a method Flush or
// Unwrap. Otherwise Serve returns [http.ErrNotSupported], and has written nothing.
func (f *Feed) Serve(w http.ResponseWriter, r *http.Request, key string, query func(context.Context) (Update, error)) error {
	if !canFlush(w) {
		return fmt.Errorf("stream events: flush a %T: %w", w, http.ErrNotSupported)
	}
	changed, stop := f.Watch(key) // before the first query, so that no change is missed
	defer stop()
	s := stream{w: w, control: http.NewResponseController(w), timeout: f.config.WriteTimeout}
	update, err := query(r.Context())
	if err != nil {
		return err
	}
	text, err := s.encode(update)
	if err != nil {
		return err
	}
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("X-Accel-Buffering", "no") // nginx would buffer events
	delay := f.config.ReconnectDelay + rand.N(f.config.ReconnectDelay)
	text = append(fmt.Appendf(nil, "retry: %d\n\n", max(1, delay.Milliseconds())), text...)
	if !s.send(text) || update.Last {
		return nil
	}
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	defer context.AfterFunc(f.closing, cancel)()
	if err := f.follow(ctx, &s, changed, query); err != nil && ctx.Err() == nil {
		f.config.Logger.Error("A query failed, so its stream of events ends", err, watermill.LogFields{"key": printable.Text(key)})
	}
	return nil // the reply has begun
}

// follow sends the result of query after each change and each refresh, until the stream ends. It
// returns the error of a query.
func (f *Feed) follow(ctx context.Context, s *stream, changed <-chan struct{}, query func(context.Context) (Update, error)) error {
	refresh := time.NewTicker(f.config.RefreshInterval)
	defer refresh.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case _, open := <-changed:
			if !open {
				return nil
			}
		case <-refresh.C:
		}
		update, err := query(ctx)
		if err != nil {
			return err
		}
		text, err := s.encode(update)
		if err != nil {
			return err
		}
		if !s.send(text) || update.Last {
			return nil
		}
	}
}

// canFlush reports whether a writer, or a writer that it wraps, supports flushing.
func canFlush(w http.ResponseWriter) bool {
	for {
		switch t := w.(type) {
		case http.Flusher, interface{ FlushError() error }:
			return true
		case interface{ Unwrap() http.ResponseWriter }:
			w = t.Unwrap()
		default:
			return false
		}
	}
}

// stream is the reply to a client. It keeps a digest of the last event, and not the event, since an
// event may have any size.
type stream struct {
	w       http.ResponseWriter
	control *http.ResponseController
	timeout time.Duration
	last    [sha256.Size]byte
}

// encode returns the text to send for an update. It returns a comment if the client already has the
// update.
func (s *stream) encode(u Update) ([]byte, error) {
	text, err := u.encode()
	if err != nil {
		return nil, err
	}
	digest := sha256.Sum256(text)
	if u.ID != "" && !u.Last && digest == s.last {
		return []byte(": unchanged\n\n"), nil
	}
	s.last = digest
	return text, nil
}

func (s *stream) send(text []byte) bool {
	// A writer that does not support deadlines has none.
	_ = s.control.SetWriteDeadline(time.Now().Add(s.timeout))
	if _, err := s.w.Write(text); err != nil {
		return false
	}
	return s.control.Flush() == nil
}
