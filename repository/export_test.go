package repository

import (
	"context"

	"github.com/millrace-dev/millrace/internal/engine"
	"github.com/millrace-dev/millrace/internal/storage"
)

// Watch calls each with every commit that the repository sends to the journal.
func (r *Repository[S]) Watch(each func(storage.Commit)) {
	r.journal.Engine = watched{r.journal.Engine, each}
}

type watched struct {
	*engine.Engine
	each func(storage.Commit)
}

func (w watched) Append(ctx context.Context, c storage.Commit) (storage.Receipt, error) {
	w.each(c)
	return w.Engine.Append(ctx, c)
}
