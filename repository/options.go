package repository

import (
	"fmt"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/internal/storage"
	"github.com/millrace-dev/millrace/journal"
)

// Option configures one call of [Repository.Execute], [Repository.Save] or [Transaction.Execute],
// or a [Participant]. [WithCommandID], [WithCommandContent], [WithExpectedVersion] and [WithWrites]
// return options. A nil option has no effect.
type Option func(*options)

type options struct {
	commandID      string // empty for none
	jointCommandID string // the id of the call to which a participant belongs
	content        []byte // of the command; nil if it is not known
	fingerprint    *storage.Fingerprint
	expected       *uint64
	readsOn        bool  // see storage.Commit
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
	switch {
	case o.content == nil:
	case o.commandID == "" && o.invalid == nil:
		o.invalid = fmt.Errorf("%w: the option WithCommandContent needs WithCommandID", journal.ErrInvalidCommit)
	default:
		f := storage.FingerprintOf(o.commandID, o.content)
		o.fingerprint = &f
	}
	return o, o.invalid
}

// WithCommandID makes the call take effect once, however often and by whichever process it is made.
// The id is stored with the commit, in the same atomic write. A command whose id the aggregate
// knows writes nothing. Use an id that stays the same when the command is repeated, such as the
// UUID of its message. The id has 1 to 512 bytes of UTF-8. The same id on another aggregate is
// another command. The same id with another decision is the same command, so let an id that a
// client chooses begin with the name of the command; [WithCommandContent] compares the rest of the
// request. It costs two write units in the layout journal.Classic. In journal.Packed it is part of
// the commit's item, and usually costs nothing more.
//
// With [Transaction.Execute] the id applies to the whole journal, and costs two write units or
// more. The ids of Repository.Execute and those of Transaction.Execute are not compared with each
// other. [journal.Config].CommandRetention says how long ids are known.
func WithCommandID(id string) Option {
	return func(o *options) {
		if o.commandID = id; id == "" {
			o.invalid = fmt.Errorf("%w: the command id is empty: omit WithCommandID for a command that may take effect more than once", journal.ErrInvalidCommit)
		}
	}
}

// WithCommandContent makes the call fail with a [*CommandMismatchError] if its command id was used
// for a command with another content before. The content is what the client has sent, such as the
// body of an HTTP request with an Idempotency-Key. A command that was executed without this option
// has no content to compare. WithCommandContent needs [WithCommandID].
//
// A digest of the content, of 48 bits, replaces a part of the commit id, so the option costs
// nothing. It needs a [journal.Config].NewID that makes UUIDs, as the default does, but not of
// version 8.
func WithCommandContent(content []byte) Option {
	return func(o *options) { o.content = append([]byte{}, content...) }
}

// mismatch returns an error if the commit of an earlier execution is of a command with another
// content.
func (o options) mismatch(id aggregate.ID, commitID string) error {
	if o.fingerprint == nil || !o.fingerprint.Contradicts(commitID) {
		return nil
	}
	return &CommandMismatchError{ID: id, CommandID: o.commandID, CommitID: commitID}
}

// WithExpectedVersion makes the call succeed only if the aggregate is at a version; 0 is an
// aggregate without events. Use it for a version that a client sends back, such as in an If-Match
// header. [Repository.Execute] then runs the decision on that version only. On any other version it
// writes nothing, does not try again, and returns a [*journal.ConflictError] with both versions.
// [Repository.Save] compares the version with that of the aggregate to be saved. [Repository.AddTo]
// applies it to one aggregate of several.
func WithExpectedVersion(version uint64) Option {
	return func(o *options) { o.expected = &version }
}

// conflict returns an error if the call expects another version.
func (o options) conflict(id aggregate.ID, version uint64) error {
	if o.expected == nil || *o.expected == version {
		return nil
	}
	return &journal.ConflictError{ID: id, Expected: *o.expected, Actual: version}
}

// WithWrites adds actions to the transaction of the commit, on other tables: an outbox row, or a
// guard that makes an email address unique. Either everything is written or nothing. If the
// condition of an action is false, the commit fails with a [*journal.WriteRefusedError], which
// names the action. A decision without events writes nothing.
//
// The function is called for each attempt to commit. If it returns an error, nothing is written and
// the call returns that error. A nil function fails the call with a [journal.ErrInvalidCommit].
//
// The transaction can have 100 actions and 4 MB, events included. Each action costs two write units
// for each KB of its item. In the layout journal.Packed the item of the commit costs that much too,
// since a commit without further actions needs no transaction there.
func WithWrites(actions func(Commit) ([]types.TransactWriteItem, error)) Option {
	return func(o *options) {
		if actions == nil {
			o.invalid = fmt.Errorf("%w: the function passed to WithWrites is nil: pass one, or omit the option", journal.ErrInvalidCommit)
			return
		}
		o.writes = append(o.writes, actions)
	}
}

// writesOf returns the additional actions for a commit.
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

// callersError is the error of a function passed to WithWrites. Its chain says nothing about the
// outcome of the commit.
type callersError struct{ err error }

func (e *callersError) Error() string { return e.err.Error() }
func (e *callersError) Unwrap() error { return e.err }
