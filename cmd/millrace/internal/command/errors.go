package command

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"

	"github.com/aws/smithy-go"

	"github.com/millrace-dev/millrace/cmd/millrace/internal/store"
	"github.com/millrace-dev/millrace/internal/dynamo"
	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/journal/archive"
	"github.com/millrace-dev/millrace/process"
	"github.com/millrace-dev/millrace/projection/readmodel"
	"github.com/millrace-dev/millrace/subscriber"
	"github.com/millrace-dev/millrace/subscriber/groups"
)

// explain returns the text of an error and, for common errors, advice what to do.
func (a *app) explain(ctx context.Context, err error) string {
	var dial *net.OpError
	if errors.As(err, &dial) && dial.Op == "dial" {
		return fmt.Sprintf("cannot reach %s: %v\n%s", a.place, dial, a.whereToLook())
	}
	if a.place.IsEmulator() && isForeign(err) {
		return fmt.Sprintf("the server at %s does not answer like a DynamoDB: check --endpoint or $%s\n%v", a.place.Endpoint, endpointEnv, err)
	}
	var active *groups.ActiveError
	var behind *readmodel.BehindError
	waited := errors.As(err, &active) || errors.As(err, &behind) // their texts contain the reason
	if errors.Is(err, context.Canceled) && !waited {
		return "interrupted"
	}
	text, advice := err.Error(), a.advice(ctx, err)
	var missing *dynamo.TableMissingError
	if errors.As(err, &missing) { // its hint is for programs, and the SDK's text repeats it
		text = strings.Replace(text, missing.Error(), fmt.Sprintf("%v: %s", journal.ErrTableMissing, missing.What), 1)
	}
	var mismatch *journal.DescriptorMismatchError
	if errors.As(err, &mismatch) && flagOf[mismatch.Field] != "" { // its text names a config
		text = strings.Replace(text, mismatch.Error(), fmt.Sprintf("table %q was made with %s %s, not %s",
			mismatch.Table, mismatch.Field, mismatch.Stored, mismatch.Given), 1)
	}
	if advice == "" {
		return text
	}
	return text + "\n" + advice
}

// isForeign reports whether a reply is not one of DynamoDB: it could not be decoded, or is an error
// without a code.
func isForeign(err error) bool {
	return errors.As(err, new(*smithy.DeserializationError)) || dynamo.Code(err) == "UnknownError" && !dynamo.IsUnavailable(err)
}

// flagOf holds the flags of the settings that never change.
var flagOf = map[string]string{"layout": "--layout", "shard count": "--shards"}

func (a *app) whereToLook() string {
	if a.place.IsAWS() {
		return "Check the region and the network."
	}
	return "Check that it runs, and that the endpoint is right. `docker run -p 8000:8000 amazon/dynamodb-local` starts a DynamoDB Local. " +
		"Set its URL with --endpoint or $" + endpointEnv + "."
}

func (a *app) advice(ctx context.Context, err error) string {
	var mismatch *journal.DescriptorMismatchError
	var table *tableMissingError
	var notNext *groups.NotNextError
	var behind *readmodel.BehindError
	var noTopic *noTopicError
	var left *groupBehindError
	switch {
	case errors.As(err, &left):
		return left.hold.advice
	case errors.As(err, &noTopic):
		return noTopic.advice()
	case errors.Is(err, store.ErrNotSetUp):
		return "Set --region (or AWS_REGION) and credentials or --profile. For a DynamoDB Local, set --endpoint or $" + endpointEnv + "."
	case errors.As(err, &table):
		return a.aboutMissing(ctx, table.advice)
	case errors.Is(err, journal.ErrTableMissing):
		return a.aboutMissing(ctx, "For a new application, `millrace create --layout packed` creates the tables. It also reports an index that is missing.")
	case errors.Is(err, journal.ErrNoDescriptor):
		return "Millrace has not created these tables. `millrace adopt` adopts them. --journal-table sets another table."
	case errors.As(err, &mismatch) && mismatch.Field == "key resolver":
		return "The application of this journal has its own key resolver, which this command does not know. Use the packages journal and " +
			"archive in a program with that resolver."
	case errors.As(err, &mismatch) && flagOf[mismatch.Field] != "":
		return fmt.Sprintf("The %s of a journal never changes: leave %s out, or set other tables. "+
			"To move to another one, export the journal and import it into a new one.", mismatch.Field, flagOf[mismatch.Field])
	case errors.Is(err, journal.ErrNotFound):
		return "The type is the name that the application passes to aggregate.Define. The id is case-sensitive."
	case errors.As(err, new(*journal.CorruptItemError)):
		return "`millrace verify` finds all faults. `millrace export --skip-unreadable` exports the aggregates that can be read."
	case errors.Is(err, groups.ErrNoGroup):
		return "`millrace groups` lists all groups. A group is created when it first subscribes."
	case errors.Is(err, groups.ErrNoGroups):
		return "`millrace groups` lists all groups. To remove the events anyway, add --without-groups."
	case errors.Is(err, groups.ErrLeftovers):
		return "The reset or removal is done. `millrace group cleanup` deletes the old rows."
	case errors.Is(err, groups.ErrNotParked), errors.As(err, &notNext):
		return "`millrace group behind` lists the aggregates that hold a group up, with the next event of each."
	case errors.As(err, new(*groups.ReplayError)):
		return "If other systems may receive the events again, add --replay."
	case errors.Is(err, groups.ErrExternalPositions):
		return "Read and change them in the store that the group's members use. See https://github.com/millrace-dev/millrace/blob/main/docs/guides/sql.md#operating-it"
	case errors.Is(err, groups.ErrNotSkipped):
		return "`millrace group skipped` lists the skipped events."
	case errors.Is(err, subscriber.ErrFenced):
		return "Run the command again."
	case errors.Is(err, journal.ErrThrottled) && !strings.Contains(err.Error(), "try again later"):
		return "Try again later, or increase the capacity of the tables."
	case errors.Is(err, journal.ErrContended):
		return "Try again."
	case errors.As(err, new(*archive.HistoryError)):
		return "--skip-different imports the other aggregates."
	case errors.As(err, new(*archive.OtherJournalError)):
		return "--prefix or --journal-table sets the journal that the archive is of. For another journal, choose another file."
	case errors.Is(err, archive.ErrTorn):
		return "The export was interrupted: `millrace export --resume` continues it. The complete aggregates of the archive can be imported."
	case errors.Is(err, readmodel.ErrNoModel):
		return "`millrace model` lists all read models. A read model is created when a program first opens it. --prefix or --model-table sets another table."
	case errors.Is(err, readmodel.ErrNoGeneration):
		return "`millrace model NAME` lists all generations."
	case errors.As(err, &behind):
		return "`millrace model catch-up` waits until the generation is up to date. --max-lag sets the lag that counts as up to date."
	case errors.Is(err, readmodel.ErrServing):
		return "`millrace model switch` makes queries read another generation, and `millrace model rollback` the previous one."
	case errors.Is(err, readmodel.ErrNoPrevious):
		return "`millrace model begin` begins a new generation."
	case errors.Is(err, process.ErrNotPending):
		return "`millrace process list` lists pending timeouts and commands, and with --open the open processes."
	}
	return ""
}

// tableMissingError reports a missing table that `millrace create` does not create.
type tableMissingError struct {
	error
	advice string
}

func (e *tableMissingError) Unwrap() error { return e.error }

// tableMissing adds advice to an error about a missing table.
func tableMissing(err error, advice string) error {
	if !errors.Is(err, journal.ErrTableMissing) {
		return err
	}
	return &tableMissingError{err, advice}
}
