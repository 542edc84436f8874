package command

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"

	"github.com/millrace-dev/millrace/cmd/millrace/internal/store"
	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/journal/archive"
	"github.com/millrace-dev/millrace/process"
	"github.com/millrace-dev/millrace/projection/readmodel"
	"github.com/millrace-dev/millrace/subscriber"
	"github.com/millrace-dev/millrace/subscriber/groups"
)

// explain says what went wrong and, for what a person at a terminal runs into, what to do.
func (a *app) explain(err error) string {
	var dial *net.OpError
	if errors.As(err, &dial) && dial.Op == "dial" {
		return fmt.Sprintf("cannot reach %s: %v\n%s", a.target, dial, a.whereToLook())
	}
	var active *groups.ActiveError
	var behind *readmodel.BehindError
	waited := errors.As(err, &active) || errors.As(err, &behind) // which say what for
	if errors.Is(err, context.Canceled) && !waited {
		return "interrupted"
	}
	text, advice := err.Error(), a.advice(err)
	if errors.Is(err, journal.ErrTableMissing) {
		text, _, _ = strings.Cut(text, ": operation error") // the SDK's text says the same again, at length
	}
	if advice == "" {
		return text
	}
	return text + "\n" + advice
}

func (a *app) whereToLook() string {
	if a.target.IsAWS() {
		return "Is the region right, and is there a network?"
	}
	return "Is it running, and is the endpoint right? `docker run -p 8000:8000 amazon/dynamodb-local` starts a DynamoDB Local; " +
		"--endpoint or $" + endpointEnv + " names it."
}

func (a *app) advice(err error) string {
	var mismatch *journal.DescriptorMismatchError
	var table *tableMissingError
	var notNext *groups.NotNextError
	var behind *readmodel.BehindError
	var noTopic *noTopicError
	switch {
	case errors.As(err, &noTopic):
		return noTopic.advice()
	case errors.Is(err, store.ErrNotSetUp):
		return "Set --region (or AWS_REGION) and credentials or --profile; or name a DynamoDB Local with --endpoint or $" + endpointEnv + "."
	case errors.As(err, &table):
		return fmt.Sprintf("This is %s. %s", a.target, table.advice)
	case errors.Is(err, journal.ErrTableMissing):
		return fmt.Sprintf("This is %s. Has the application a prefix? --prefix or $%s begins the names with it, "+
			"--journal-table, --snapshot-table and --checkpoint-table name the tables, --endpoint and --region another place. "+
			"For a new application, `millrace create` makes them.", a.target, prefixEnv)
	case errors.Is(err, journal.ErrNoDescriptor):
		return "These tables were not made by Millrace. `millrace adopt` takes them over; --journal-table names others."
	case errors.As(err, &mismatch) && mismatch.Field == "key resolver":
		return "This journal has a key resolver of its application's own, which this command does not know. A program that has it can " +
			"do the same with the packages journal and archive."
	case errors.As(err, &mismatch) && mismatch.Field == "shard count":
		return "The shard count of a journal never changes: leave --shards out to take it as it is, or name other tables. " +
			"To move to another count, export the journal and import it into a new one."
	case errors.Is(err, journal.ErrNotFound):
		return "The type is the name that the application gave to aggregate.Define, and the id is case-sensitive."
	case errors.As(err, new(*journal.CorruptItemError)):
		return "`millrace verify` finds all that is wrong, and `millrace export --skip-unreadable` saves what is not."
	case errors.Is(err, groups.ErrNoGroup):
		return "`millrace groups` lists them. A group comes into being when it first subscribes."
	case errors.Is(err, groups.ErrNoGroups):
		return "`millrace groups` lists all groups. To remove the events all the same, add --without-groups."
	case errors.Is(err, groups.ErrLeftovers):
		return "The group was reset, and works. `millrace group cleanup` deletes the rows."
	case errors.Is(err, groups.ErrNotParked), errors.As(err, &notNext):
		return "`millrace group behind` shows what holds a group up, and with which event it goes on."
	case errors.Is(err, groups.ErrExternalPositions):
		return "They are read and changed in the store that its members use. See https://github.com/millrace-dev/millrace/blob/main/docs/guides/sql.md#operating-it"
	case errors.Is(err, groups.ErrNotSkipped):
		return "`millrace group skipped` lists those that were."
	case errors.Is(err, subscriber.ErrFenced):
		return "Do it again."
	case errors.Is(err, journal.ErrThrottled) && !strings.Contains(err.Error(), "try again later"):
		return "Try later, or raise the capacity of the tables."
	case errors.Is(err, journal.ErrContended):
		return "Try again."
	case errors.Is(err, archive.ErrTorn):
		return "Its export was cut off: `millrace export --resume` goes on with it. What is complete in it can be imported."
	case errors.Is(err, readmodel.ErrNoModel):
		return "`millrace model` lists them. One comes into being when a program first opens it; --prefix or --model-table names another table."
	case errors.Is(err, readmodel.ErrNoGeneration):
		return "`millrace model NAME` lists them."
	case errors.As(err, &behind):
		return "`millrace model catch-up` waits, and --max-lag says how far behind is near enough."
	case errors.Is(err, readmodel.ErrServing):
		return "`millrace model switch` has queries read another one, and `millrace model rollback` the one before."
	case errors.Is(err, readmodel.ErrNoPrevious):
		return "`millrace model begin` builds the read model anew."
	case errors.Is(err, process.ErrNotPending):
		return "`millrace process list` shows what is pending, with --open which processes are open."
	}
	return ""
}

// tableMissingError is of a table that `millrace create` does not make.
type tableMissingError struct {
	error
	advice string
}

func (e *tableMissingError) Unwrap() error { return e.error }

// tableMissing adds who makes a table, where it is missing.
func tableMissing(err error, advice string) error {
	if !errors.Is(err, journal.ErrTableMissing) {
		return err
	}
	return &tableMissingError{err, advice}
}
