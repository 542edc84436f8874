package repository

import (
	"fmt"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/millrace-dev/millrace/internal/eventlog"
	"github.com/millrace-dev/millrace/journal"
)

// Option adds something to the commit of one call. [CommandID], [Writes] and [WritesFor] make them. A nil one adds nothing.
type Option func(*options)

type options struct {
	commandID string // empty for none
	invalid   error  // of an option that cannot work
	writes    []func(*eventlog.Commit) ([]types.TransactWriteItem, error)
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
	return func(o *options) {
		o.writes = append(o.writes, func(*eventlog.Commit) ([]types.TransactWriteItem, error) { return actions, nil })
	}
}

// WritesFor is [Writes] for actions that depend on the events. The function receives them as they will be stored, with
// their numbers and ids; only OccurredAt and CommitID are not set yet. It runs again for each attempt, and must not
// change the events. Its error refuses the commit and is returned. With a nil function the call writes nothing and
// returns [journal.ErrInvalidWrite].
func WritesFor(actions func(events []*journal.Record) ([]types.TransactWriteItem, error)) Option {
	return func(o *options) {
		if actions == nil {
			o.invalid = fmt.Errorf("%w: the function given to WritesFor is nil: give one, or leave the option out", journal.ErrInvalidWrite)
			return
		}
		o.writes = append(o.writes, func(c *eventlog.Commit) ([]types.TransactWriteItem, error) { return actions(recordsOf(c)) })
	}
}

// recordsOf returns the events of a commit as records without a time and a commit id.
func recordsOf(c *eventlog.Commit) []*journal.Record {
	records := make([]*journal.Record, len(c.Events))
	for i, e := range c.Events {
		records[i] = &journal.Record{
			Aggregate: c.Aggregate, Number: c.Expected + uint64(i) + 1,
			EventID: e.ID, EventType: e.Type, Payload: e.Payload, Metadata: e.Metadata,
		}
	}
	return records
}

// addWrites completes a commit that has its events.
func (o options) addWrites(c *eventlog.Commit) error {
	for _, actions := range o.writes {
		writes, err := actions(c)
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
