package rest

import "time"

// Timeout has requests end sooner.
func (m *Mux) Timeout(after time.Duration) { m.timeout = after }
