package encrypt

import (
	"context"
	"fmt"

	"github.com/millrace-dev/millrace/aggregate"
)

// Wrapper encrypts the keys of aggregates with a key that their store does not contain, for example
// in AWS KMS; see the package overview. It must be safe for concurrent use. The journal returns its
// errors to the caller.
type Wrapper interface {
	// Wrap encrypts a key, and binds it to the aggregate so that no other aggregate can unwrap it.
	Wrap(ctx context.Context, id aggregate.ID, key []byte) (wrapped []byte, err error)
	// Unwrap reverses Wrap.
	Unwrap(ctx context.Context, id aggregate.ID, wrapped []byte) (key []byte, err error)
}

// LocalWrapper returns a Wrapper with a key of the application: 32 random bytes, the same in all
// processes, from its secrets and never from its source code. It is for tests, and for deployments
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
