package rest

import "time"

// Timeout sets a shorter time limit for requests.
func (m *Mux) Timeout(after time.Duration) { m.timeout = after }
