package repository

import (
	"fmt"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/journal"
)

// Option adjusts one call of [Repository.Execute], [Repository.Save] or [Parts.Execute], or a
// [Part]. [CommandID], [ExpectVersion] and [Writes] return options. A nil option has no effect.
type Option func(*options)

type options struct {
	commandID      string // empty for none
	jointCommandID string // that of the call to which a part belongs
	expected       *uint64
	invalid        error // of an option that cannot work
	writes         []func(Commit) ([]types.TransactWriteItem, error)
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

// CommandID makes the call take effect once, however often it is made and by whichever process. The
// id is stored with the commit, in the same atomic write, and a command whose id the aggregate
// knows writes nothing. Take an id that stays the same when the command is repeated, such as the
// UUID of the message that carries it. It has 1 to 512 bytes of UTF-8; the same id on another
// aggregate is another command. It costs two write units in the layout journal.Classic. In
// journal.Packed it is part of the commit's item, and costs as a rule nothing more.
//
// With [Parts.Execute] the id is one of the whole journal, and costs two write units or more. The
// ids of Repository.Execute and those of Parts.Execute are not compared with each other. See
// [journal.Config].CommandRetention for how long ids are known.
func CommandID(id string) Option {
	return func(o *options) {
		if o.commandID = id; id == "" {
			o.invalid = fmt.Errorf("%w: the command id is empty: leave CommandID out for a command that may take effect more than once", journal.ErrInvalidCommit)
		}
	}
}

// ExpectVersion makes the call succeed only if the aggregate is at a version; 0 is an aggregate
// without events. It is for a version that a client sends back, such as in an If-Match header.
// [Repository.Execute] then runs the decision on that version alone. On any other it writes
// nothing, does not try again, and returns a [*journal.ConflictError] with both versions.
// [Repository.Save] compares it with the version of the aggregate to be saved. [Repository.Part]
// makes one aggregate of several be decided on at that version alone.
func ExpectVersion(version uint64) Option {
	return func(o *options) { o.expected = &version }
}

// conflict returns an error if the call is for another version than the given one.
func (o options) conflict(id aggregate.ID, version uint64) error {
	if o.expected == nil || *o.expected == version {
		return nil
	}
	return &journal.ConflictError{ID: id, Expected: *o.expected, Actual: version}
}

// Writes puts further actions into the transaction of the commit, on tables of your own: an outbox
// row, or a guard that makes an e-mail address unique. Either all of it is written or nothing. An
// action whose condition is false refuses the commit with a [*journal.WriteRefusedError], which
// names it. A decision without events makes no writes.
//
// The function is called for each attempt to commit. An error that it returns refuses the commit
// and is returned to the caller. A nil function refuses the call with a [journal.ErrInvalidCommit].
//
// The transaction has room for 100 actions and 4 MB, events included. Each action costs two write
// units for each KB of its item. In the layout journal.Packed the commit's own item costs that much
// too, as a commit without further actions needs no transaction there.
func Writes(actions func(Commit) ([]types.TransactWriteItem, error)) Option {
	return func(o *options) {
		if actions == nil {
			o.invalid = fmt.Errorf("%w: the function given to Writes is nil: give one, or leave the option out", journal.ErrInvalidCommit)
			return
		}
		o.writes = append(o.writes, actions)
	}
}

// writesOf returns the actions for a commit.
func (o options) writesOf(c Commit) (writes []types.TransactWriteItem, err error) {
	for _, actions := range o.writes {
		more, err := actions(c)
		if err != nil {
			return nil, &callersError{err}
		}
		writes = append(writes, more...)
	}
	return writes, nil
}

// callersError is the error of a function given to Writes. Its chain is not inspected for the
// outcome of the commit.
type callersError struct{ err error }

func (e *callersError) Error() string { return e.err.Error() }
func (e *callersError) Unwrap() error { return e.err }
