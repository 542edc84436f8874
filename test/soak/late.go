package soak

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
)

// late is a request whose client has given it up and which is still on its way: a commit that is written after all,
// when everybody believes that it was not.
type late struct {
	request *http.Request
	points  int // until it arrives
}

// delays tells whether a request is one of those that arrive late.
func (w *wire) delays(request *http.Request) bool {
	if w.late == 0 || !strings.HasSuffix(request.Header.Get("X-Amz-Target"), ".TransactWriteItems") {
		return false
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.random.Float64() < w.late
}

// delay takes a request, and gives what its client sees.
func (w *wire) delay(request *http.Request) error {
	body, err := io.ReadAll(request.Body)
	if err != nil {
		return err
	}
	_ = request.Body.Close()
	again := request.Clone(context.WithoutCancel(request.Context()))
	again.Body = io.NopCloser(bytes.NewReader(body))
	w.mu.Lock()
	defer w.mu.Unlock()
	w.underWay = append(w.underWay, late{again, 1 + w.random.IntN(40)})
	return fmt.Errorf("soak: cut, and the request arrives later: %w", io.ErrUnexpectedEOF)
}

// arrive delivers the requests whose time has come, or all.
func (w *wire) arrive(all bool) {
	w.mu.Lock()
	var due []late
	left := w.underWay[:0]
	for _, l := range w.underWay {
		if l.points--; all || l.points <= 0 {
			due = append(due, l)
		} else {
			left = append(left, l)
		}
	}
	w.underWay = left
	w.mu.Unlock()
	for _, l := range due {
		if response, err := w.next.Do(l.request); err == nil {
			_ = response.Body.Close()
		}
	}
}
