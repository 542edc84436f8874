package encrypt

import (
	"context"
	"fmt"

	"github.com/millrace-dev/millrace/aggregate"
)

// Wrapper protects the keys of aggregates with one that their store does not have, as AWS KMS does:
// see the package overview. It must be safe for concurrent use. Errors come through to the caller
// of the journal.
type Wrapper interface {
	// Wrap encrypts a key, bound to the aggregate so that it can be unwrapped for no other.
	Wrap(ctx context.Context, id aggregate.ID, key []byte) (wrapped []byte, err error)
	Unwrap(ctx context.Context, id aggregate.ID, wrapped []byte) (key []byte, err error)
}

// LocalWrapper wraps with a key of the application's own: 32 random bytes, the same in all
// processes, from its secrets and never from its source. It is for tests, and for deployments
// without a key service. The key cannot be changed later.
//
// Errors: [*ConfigError].
func LocalWrapper(key []byte) (Wrapper, error) {
	s, err := newSealer(key, ErrForged)
	if err != nil {
		return nil, err
	}
	return localWrapper{s}, nil
}

type localWrapper struct{ *sealer }

func (w localWrapper) Wrap(_ context.Context, id aggregate.ID, key []byte) ([]byte, error) {
	return w.seal(key, aboutKey(id)), nil
}

func (w localWrapper) Unwrap(_ context.Context, id aggregate.ID, wrapped []byte) ([]byte, error) {
	key, err := w.unseal(wrapped, aboutKey(id))
	if err != nil {
		return nil, fmt.Errorf("wrapped key: %w", err)
	}
	return key, nil
}

func aboutKey(id aggregate.ID) []byte {
	return appendText(appendText([]byte("millrace key"), id.Type), id.Value)
}
