package repository

import (
	"context"

	"github.com/millrace-dev/millrace/internal/eventlog"
)

// Watch calls each with every commit that the repository sends to the journal.
func (r *Repository[S]) Watch(each func(eventlog.Commit)) {
	r.journal.Engine = watched{r.journal.Engine, each}
}

type watched struct {
	eventlog.Engine
	each func(eventlog.Commit)
}

func (w watched) Append(ctx context.Context, c eventlog.Commit) (eventlog.Receipt, error) {
	w.each(c)
	return w.Engine.Append(ctx, c)
}
