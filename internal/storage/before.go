package storage

import "context"

type beforeKey struct{}

// WithBefore returns a context for the encodings of a commit. [EncodingBefore] finds read in it.
// read returns the encodings of the last event before the commit.
func WithBefore(ctx context.Context, read func(context.Context) (names string, err error)) context.Context {
	return context.WithValue(ctx, beforeKey{}, read)
}

// EncodingBefore returns the encodings of the last event before the commit, as names separated by
// commas. It is empty if there is no such event, or if ctx does not belong to a commit. A commit
// that expects no events is refused if there are some. EncodingBefore then returns that error.
func EncodingBefore(ctx context.Context) (names string, err error) {
	read, ok := ctx.Value(beforeKey{}).(func(context.Context) (string, error))
	if !ok {
		return "", nil
	}
	return read(ctx)
}
