package storage

import "context"

type beforeKey struct{}

// WithBefore returns a context for the encodings of a commit. From it, [EncodingBefore] finds out
// what was applied to the last event before the commit, which read reads.
func WithBefore(ctx context.Context, read func(context.Context) (names string, err error)) context.Context {
	return context.WithValue(ctx, beforeKey{}, read)
}

// EncodingBefore returns the encodings of the last event before the commit, by their names with
// commas between. It is empty if there is none, or if ctx is not that of a commit.
func EncodingBefore(ctx context.Context) (names string, err error) {
	read, ok := ctx.Value(beforeKey{}).(func(context.Context) (string, error))
	if !ok {
		return "", nil
	}
	return read(ctx)
}
