package repository

import (
	"fmt"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/millrace-dev/millrace/journal"
)

// Option adds something to the commit of one call. [CommandID], [Writes] and [WritesFor] make them. A nil one adds nothing.
type Option func(*options)

type options struct {
	commandID string // empty for none
	invalid   error  // of an option that cannot work
	writes    []func(journal.Commit) ([]types.TransactWriteItem, error)
}

func optionsOf(given []Option) (options, error) {
	var o options
	for _, option := range given {
		if option != nil {
			option(&o)
		}
	}
	return o, o.invalid
}

// CommandID makes the call take effect once, however often it is made and by whichever process: the id is stored with
// the commit, in the same transaction, and a command whose id the aggregate knows writes nothing. Take an id that stays the
// same when the command is repeated, such as the UUID of the message that carries it. 1 to 512 bytes of UTF-8; the same id on
// another aggregate is another command. It costs two write units. See [journal.Config].CommandRetention for how long ids are known.
func CommandID(id string) Option {
	return func(o *options) {
		if o.commandID = id; id == "" {
			o.invalid = fmt.Errorf("%w: it is empty: leave CommandID out for a command that may take effect more than once", journal.ErrInvalidCommand)
		}
	}
}

// Writes puts further actions into the transaction of the commit, on tables of your own: an outbox row, or a guard that
// makes an e-mail address unique. Either all of it is written or nothing. An action whose condition is false refuses the commit
// with a [*journal.WriteRefusedError], which says which one. They are not made when a decision has no events.
//
// The transaction has room for 100 actions and 4 MB, events included; each action costs two write units for each KB of its item.
func Writes(actions ...types.TransactWriteItem) Option {
	return WritesFor(func(journal.Commit) ([]types.TransactWriteItem, error) { return actions, nil })
}

// WritesFor is [Writes] for actions that depend on the events, which it gets as they will be stored: with their ids, and
// numbered from Expected+1 on. It runs again for each attempt, and must not change the commit. Its error refuses the
// commit and is returned. A call that is given a nil function writes nothing and gives a [journal.ErrInvalidWrite].
func WritesFor(actions func(journal.Commit) ([]types.TransactWriteItem, error)) Option {
	return func(o *options) {
		if actions == nil {
			o.invalid = fmt.Errorf("%w: the function given to WritesFor is nil: give one, or leave the option out", journal.ErrInvalidWrite)
			return
		}
		o.writes = append(o.writes, actions)
	}
}

// addWrites completes a commit that has its events.
func (o options) addWrites(c *journal.Commit) error {
	for _, actions := range o.writes {
		writes, err := actions(*c)
		if err != nil {
			return &callersError{err}
		}
		c.Writes = append(c.Writes, writes...)
	}
	return nil
}

// callersError is one of a WritesFor function, whatever it wraps: it says nothing of the commit.
type callersError struct{ err error }

func (e *callersError) Error() string { return e.err.Error() }
func (e *callersError) Unwrap() error { return e.err }
