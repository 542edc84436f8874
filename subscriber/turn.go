package subscriber

// turn is a stream or a deferred event that waits for a lane, and its deliverer.
type turn struct {
	deliverer *deliverer
	stream    *stream
	deferred  *deferral // nil for a stream
}

// serve serves the stream or the deferred event, and reports whether the stream must be served
// again.
func (t turn) serve() (again bool) {
	if t.deferred != nil {
		t.deliverer.retry(t.deferred)
		return false
	}
	return t.deliverer.serve(t.stream)
}
