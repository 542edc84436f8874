// Package apptest has tests that all applications share.
package apptest

import (
	"bytes"
	"sync"
)

// Terminal keeps what a program prints while a test reads it.
type Terminal struct {
	mu   sync.Mutex
	text bytes.Buffer
}

// Write implements io.Writer.
func (t *Terminal) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.text.Write(p)
}

// String returns what was printed so far.
func (t *Terminal) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.text.String()
}
