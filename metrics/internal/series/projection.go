package series

import "github.com/millrace-dev/millrace/projection"

var projectionEntries = []entry[projection.Stats]{
	counter("projection_events_applied_total", "{event}", "Events whose writes were committed.",
		func(s projection.Stats) uint64 { return s.Applied }),
	counter("projection_events_ignored_total", "{event}", "Events without writes.",
		func(s projection.Stats) uint64 { return s.Ignored }),
	counter("projection_writes_dropped_total", "{write}", "Idempotent writes that were left out, since their condition was false.",
		func(s projection.Stats) uint64 { return s.Dropped }),
}

// OfProjection returns the metrics of a projection.
func OfProjection(stats func() projection.Stats, name string) Component {
	return of("projection", name, projectionOf, stats, projectionEntries)
}
