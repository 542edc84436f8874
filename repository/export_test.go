package repository

import (
	"context"

	"github.com/millrace-dev/millrace/internal/storage"
)

// Watch calls each with every commit that the repository sends to the journal.
func (r *Repository[S]) Watch(each func(storage.Commit)) {
	write := r.append
	r.append = func(ctx context.Context, c storage.Commit) (storage.Receipt, error) {
		each(c)
		return write(ctx, c)
	}
}
