package engine

import (
	"maps"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/internal/metadata"
	"github.com/millrace-dev/millrace/internal/storage"
)

// marked returns an event with the mark of a publisher's own stream if e.OwnStream is true, and
// otherwise without it. groups.Trim removes marked events. So only a publisher can set the mark,
// and metadata that was copied from another event loses it. It does not change e.Metadata.
func marked(id aggregate.ID, e storage.Event) storage.Event {
	if _, given := e.Metadata[metadata.OwnStreamKey]; !e.OwnStream && !given {
		return e
	}
	with := make(aggregate.Metadata, len(e.Metadata)+1)
	maps.Copy(with, e.Metadata)
	delete(with, metadata.OwnStreamKey)
	if e.OwnStream {
		with[metadata.OwnStreamKey] = metadata.StreamMark(id)
	}
	e.Metadata = with
	return e
}
