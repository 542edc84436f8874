package command

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"

	"github.com/millrace-dev/millrace/archive"
	"github.com/millrace-dev/millrace/cmd/millrace/internal/store"
	"github.com/millrace-dev/millrace/groups"
	"github.com/millrace-dev/millrace/journal"
)

// explain says what went wrong and, for what a person at a terminal runs into, what to do.
func (a *app) explain(err error) string {
	var dial *net.OpError
	if errors.As(err, &dial) && dial.Op == "dial" {
		return fmt.Sprintf("cannot reach %s: %v\n%s", a.target, dial, a.whereToLook())
	}
	if errors.Is(err, context.Canceled) && !errors.Is(err, groups.ErrActive) { // that says whom the wait was for
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
	return "Is it running, and is the endpoint right? `make dynamodb-local` starts a DynamoDB Local; --endpoint or $" + endpointEnv + " names it."
}

func (a *app) advice(err error) string {
	var mismatch *journal.DescriptorMismatchError
	switch {
	case errors.Is(err, store.ErrNotSetUp):
		return "Set --region (or AWS_REGION) and credentials or --profile; or name a DynamoDB Local with --endpoint or $" + endpointEnv + "."
	case errors.Is(err, journal.ErrTableMissing):
		return fmt.Sprintf("This is %s. `millrace create` makes the tables; --journal-table and --snapshot-table name others, "+
			"--endpoint and --region another place.", a.target)
	case errors.Is(err, journal.ErrNoDescriptor):
		return "These tables were not made by Millrace. journal.Adopt, in a program, takes them over; --journal-table names others."
	case errors.As(err, &mismatch) && mismatch.Field == "key resolver":
		return "This journal has a key resolver of its application's own, which this command does not know. A program that has it can " +
			"do the same with the packages journal and archive."
	case errors.As(err, &mismatch) && mismatch.Field == "shard count":
		return "The shard count of a journal never changes: leave --shards out to take it as it is, or name other tables. " +
			"To move to another count, export the journal and import it into a new one."
	case errors.Is(err, journal.ErrNotFound):
		return "The type is the name that the application gave to aggregate.Define, and the id is case-sensitive."
	case errors.Is(err, journal.ErrCorruptItem):
		return "`millrace verify` finds all that is wrong, and `millrace export --skip-unreadable` saves what is not."
	case errors.Is(err, groups.ErrNoGroup):
		return "`millrace groups` lists them. A group comes into being when it first subscribes."
	case errors.Is(err, groups.ErrLeftovers):
		return "The group was reset, and works. `millrace group cleanup` deletes the rows."
	case errors.Is(err, groups.ErrNotParked), errors.Is(err, groups.ErrNotNext):
		return "`millrace group behind` shows what holds a group up, and with which event it goes on."
	case errors.Is(err, groups.ErrNotSkipped):
		return "`millrace group skipped` lists those that were."
	case errors.Is(err, groups.ErrFenced):
		return "Do it again."
	case errors.Is(err, journal.ErrThrottled):
		return "Try later, or give the tables more capacity."
	case errors.Is(err, archive.ErrTorn):
		return "Its export was cut off: `millrace export --resume` goes on with it. What is complete in it can be imported."
	}
	return ""
}
