package journal_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/internal/engine"
	"github.com/millrace-dev/millrace/internal/storage"
	"github.com/millrace-dev/millrace/internal/testdb"
	"github.com/millrace-dev/millrace/internal/testjournal"
	"github.com/millrace-dev/millrace/journal"
)

// kinds lists the errors of the package, so that a test can say which one an error is: sentinels,
// and pointers to typed errors.
var kinds = []any{
	journal.ErrNotFound, journal.ErrConflict, journal.ErrOutcomeUnknown, journal.ErrInvalidCommit, journal.ErrThrottled, journal.ErrContended, journal.ErrUnavailable,
	journal.ErrTableMissing, journal.ErrAccess, journal.ErrNoDescriptor, journal.ErrNotCovered, journal.ErrKeyDestroyed,
	new(*journal.ConfigError), new(*journal.DeletedError), new(*journal.TruncatedError), new(*journal.CorruptItemError),
	new(*journal.DescriptorMismatchError), new(*journal.DuplicateCommandError), new(*journal.EncodingError),
	new(*journal.EventTypeError), new(*journal.TooLargeError), new(*journal.WriteRefusedError),
}

func isKind(err error, kind any) bool {
	if sentinel, ok := kind.(error); ok {
		return errors.Is(err, sentinel)
	}
	return errors.As(err, reflect.New(reflect.TypeOf(kind).Elem()).Interface())
}

// requireKind requires that an error is a sentinel, or has the type to which kind points.
func requireKind(t *testing.T, err error, kind any, message ...any) {
	t.Helper()
	require.True(t, isKind(err, kind), append([]any{fmt.Sprintf("%v is no %T %v", err, kind, kind)}, message...)...)
}

// assertOnly requires that an error is of one kind and no other, or of no kind if want is nil.
func assertOnly(t *testing.T, err error, want any) {
	t.Helper()
	for _, kind := range kinds {
		assert.Equal(t, kind == want || want != nil && reflect.TypeOf(kind) == reflect.TypeOf(want) && reflect.TypeOf(want).Elem().Kind() == reflect.Pointer,
			isKind(err, kind), "%v is %T %v", err, kind, kind)
	}
}

func TestEveryTypedErrorIsOneKindAndSaysWhatToDo(t *testing.T) {
	t.Parallel()
	cause := errors.New("connection lost")
	for _, c := range []struct {
		err  error
		want any
		text string
	}{
		{&journal.ConfigError{Field: "Shards", Reason: "is 0: choose"}, new(*journal.ConfigError), "journal config: Shards is 0: choose"},
		{
			&journal.ConflictError{ID: user("1"), Expected: 2, Actual: 3}, journal.ErrConflict,
			"aggregate user-account-1 is at version 3, not at 2 as expected: load it again and decide again",
		},
		{
			&journal.OutcomeUnknownError{ID: user("1"), First: 4, CommitID: "c", Err: cause}, journal.ErrOutcomeUnknown,
			"append to user-account-1: commit c, which begins with event 4, may or may not have been written, resolve it before repeating the command: connection lost",
		},
		{
			&journal.TooLargeError{ID: user("1"), What: "the commit", Size: 2, Limit: 1, Unit: "bytes"}, new(*journal.TooLargeError),
			"append to user-account-1: the commit has 2 bytes, DynamoDB allows 1: keep large data elsewhere and store a reference, or split the commit",
		},
		{
			&journal.TooLargeError{ID: user("1"), What: "the commit", Size: 98, Limit: 97, Unit: "events"}, new(*journal.TooLargeError),
			"append to user-account-1: the commit has 98 events, its transaction has room for 97: split the decision",
		},
		{
			&journal.DeletedError{ID: user("1"), Version: 7, At: time.Unix(1_700_000_000, 0).UTC()}, new(*journal.DeletedError),
			"aggregate user-account-1 was deleted at 2023-11-14T22:13:20Z, after event 7: use another id",
		},
		{
			&journal.TruncatedError{ID: user("1"), Before: 5}, new(*journal.TruncatedError),
			"events of user-account-1 before 5 were removed: start from there, or from a snapshot",
		},
		{
			&journal.DuplicateCommandError{ID: user("1"), CommandID: "pay-7", CommitID: "c", First: 3, Version: 4}, new(*journal.DuplicateCommandError),
			`append to user-account-1, nothing written: command "pay-7" was executed before, by commit c, which led to version 4`,
		},
		{
			&journal.WriteRefusedError{ID: user("1"), Index: 1, Table: "emails", Code: "ConditionalCheckFailed", Message: "The conditional request failed"},
			new(*journal.WriteRefusedError),
			`append to user-account-1, nothing written: write 1, to table "emails", was refused: ConditionalCheckFailed: The conditional request failed`,
		},
		{
			&journal.CorruptItemError{Table: "journal", PartitionKey: "p", SortKey: "s", Reason: "is missing"}, new(*journal.CorruptItemError),
			`item "p" / "s" of table "journal" is missing: restore it from a backup or correct it by hand`,
		},
		{
			&journal.DescriptorMismatchError{Table: "journal", Field: "shard count", Stored: "7", Given: "8"}, new(*journal.DescriptorMismatchError),
			`table "journal" was made with shard count 7, the config says 8: correct the config, or use another table`,
		},
		{
			&journal.DescriptorMismatchError{Table: "journal", Field: "layout", Stored: "packed", Given: "classic"}, new(*journal.DescriptorMismatchError),
			`table "journal" was made with layout packed, Config.Layout is classic: set it to journal.Packed, or use another table`,
		},
		{
			&journal.DescriptorMismatchError{Table: "journal", Field: "layout", Stored: "classic", Given: "packed"}, new(*journal.DescriptorMismatchError),
			`table "journal" was made with layout classic, Config.Layout is packed: set it to journal.Classic, or use another table`,
		},
	} {
		assertOnly(t, fmt.Errorf("wrapped: %w", c.err), c.want)
		assert.EqualError(t, c.err, c.text)
	}
	assert.ErrorIs(t, &journal.OutcomeUnknownError{Err: cause}, cause)
}

// call is one way to use a journal.
type call struct {
	name      string
	operation string // that it sends to DynamoDB
	table     func(journal.Tables) string
	do        func(ctx context.Context, j *engine.Engine) error
}

func inJournal(tables journal.Tables) string  { return tables.Journal }
func inSnapshot(tables journal.Tables) string { return tables.Snapshot }

var allCalls = []call{
	{"Append", "TransactWriteItems", func(tables journal.Tables) string { return tables.Journal + `" or "` + tables.Snapshot }, func(ctx context.Context, j *engine.Engine) error {
		_, err := j.Append(ctx, one("1"))
		return err
	}},
	{"Head", "GetItem", inSnapshot, func(ctx context.Context, j *engine.Engine) error {
		_, err := j.Head(ctx, user("1"))
		return err
	}},
	{"Events by key", "BatchGetItem", inJournal, func(ctx context.Context, j *engine.Engine) error { return firstError(ctx, j, 2) }},
	{"Events by index", "Query", inJournal, func(ctx context.Context, j *engine.Engine) error { return firstError(ctx, j, 20) }},
	{"Tail", "Query", inJournal, func(ctx context.Context, j *engine.Engine) error {
		_, err := j.TailShard(ctx, storage.TailQuery{AggregateType: "user-account"})
		return err
	}},
	{"Resolve", "GetItem", inJournal, func(ctx context.Context, j *engine.Engine) error {
		_, err := j.Resolve(ctx, &journal.OutcomeUnknownError{ID: user("1"), First: 1, CommitID: "c"})
		return err
	}},
	{"Version", "GetItem", inSnapshot, func(ctx context.Context, j *engine.Engine) error {
		_, err := j.Version(ctx, user("1"))
		return err
	}},
	{"Command", "TransactGetItems", inJournal, func(ctx context.Context, j *engine.Engine) error {
		_, _, err := j.Command(ctx, user("1"), "c")
		return err
	}},
	{"SnapshotBefore by key", "GetItem", inSnapshot, func(ctx context.Context, j *engine.Engine) error {
		_, err := j.SnapshotBefore(ctx, journal.Head{Aggregate: user("1"), Redundant: []uint64{1}}, 1)
		return err
	}},
	{"SnapshotBefore by index", "Query", inSnapshot, func(ctx context.Context, j *engine.Engine) error {
		_, err := j.SnapshotBefore(ctx, journal.Head{Aggregate: user("1")}, 1)
		return err
	}},
	{"RemoveSnapshots", "BatchWriteItem", inSnapshot, func(ctx context.Context, j *engine.Engine) error {
		return j.RemoveSnapshots(ctx, user("1"), []uint64{1})
	}},
	{"Truncate", "GetItem", inSnapshot, func(ctx context.Context, j *engine.Engine) error {
		return j.Truncate(ctx, user("1"), 2, journal.RemoveOptions{})
	}},
	{"Delete", "GetItem", inSnapshot, func(ctx context.Context, j *engine.Engine) error {
		return j.Delete(ctx, user("1"), 2, journal.RemoveOptions{})
	}},
	{"Heads", "Scan", inSnapshot, func(ctx context.Context, j *engine.Engine) error {
		return firstHeadError(ctx, j, journal.HeadsQuery{})
	}},
	{"Heads of a type", "Query", inSnapshot, func(ctx context.Context, j *engine.Engine) error {
		return firstHeadError(ctx, j, journal.HeadsQuery{AggregateType: "user-account"})
	}},
	{"Open", "GetItem", inJournal, func(ctx context.Context, j *engine.Engine) error {
		ctx, cancel := context.WithTimeout(ctx, 50*time.Millisecond) // it would wait longer
		defer cancel()
		_, err := journal.Open(ctx, j.Given, configOf(j))
		return err
	}},
}

func firstError(ctx context.Context, j *engine.Engine, to uint64) error {
	for _, err := range j.Events(ctx, user("1"), 1, to) {
		if err != nil {
			return err
		}
	}
	return nil
}

func firstHeadError(ctx context.Context, j *engine.Engine, q journal.HeadsQuery) error {
	for _, err := range j.Heads(ctx, q) {
		if err != nil {
			return err
		}
	}
	return nil
}

func TestEveryCallNamesWhatDynamoDBRefused(t *testing.T) {
	for code, want := range map[string]error{
		"AccessDeniedException":                  journal.ErrAccess,
		"UnrecognizedClientException":            journal.ErrAccess,
		"ExpiredTokenException":                  journal.ErrAccess,
		"InvalidSignatureException":              journal.ErrAccess,
		"MissingAuthenticationTokenException":    journal.ErrAccess,
		"ResourceNotFoundException":              journal.ErrTableMissing,
		"ThrottlingException":                    journal.ErrThrottled,
		"ProvisionedThroughputExceededException": journal.ErrThrottled,
		"RequestLimitExceeded":                   journal.ErrThrottled,
		"ValidationException":                    nil,
	} {
		t.Run(code, func(t *testing.T) {
			t.Parallel()
			testdb.WithFakeTime(t, func(t *testing.T) {
				for _, c := range allCalls {
					opened := false
					client := offline(func(operation string) (*http.Response, error) {
						if !opened {
							return descriptorReply()
						}
						assert.Equal(t, c.operation, operation, c.name)
						return refuse(http.StatusBadRequest, code, "")
					})
					j := testjournal.Open(t, client, journal.Config{RetryBudget: time.Nanosecond})
					opened = true

					err := c.do(t.Context(), j.Internal())

					require.Error(t, err, c.name)
					assertOnly(t, err, want)
					assert.ErrorContains(t, err, "says the test", "DynamoDB's own words")
					var sdk interface{ ErrorCode() string }
					require.ErrorAs(t, err, &sdk, c.name)
					assert.Equal(t, code, sdk.ErrorCode())
					if want != nil {
						assert.ErrorContains(t, err, `"`+c.table(j.Config().Tables)+`"`, c.name)
					}
				}
			})
		})
	}
}

// offline returns a client whose requests are answered by the test, and not repeated by the SDK.
func offline(answer func(operation string) (*http.Response, error)) *dynamodb.Client {
	return dynamodb.New(dynamodb.Options{
		Region: "us-east-1", Credentials: credentials.NewStaticCredentialsProvider("key", "secret", ""), RetryMaxAttempts: 1,
		HTTPClient: answering(answer),
	})
}

type answering func(operation string) (*http.Response, error)

func (a answering) Do(r *http.Request) (*http.Response, error) {
	_, operation, _ := strings.Cut(r.Header.Get("X-Amz-Target"), ".")
	return a(operation)
}

// descriptorReply returns the reply to a read of the descriptor of a journal with default names.
func descriptorReply() (*http.Response, error) {
	return reply(http.StatusOK, `{"Item":{"millrace_format":{"N":"1"},"millrace_shards":{"N":"7"},"millrace_resolver":{"S":"fnv1a-64"},`+
		`"millrace_snapshot_table":{"S":"snapshot"},"millrace_attributes":{"S":"{\"PartitionKey\":\"pkey\",\"SortKey\":\"skey\",`+
		`\"AggregateID\":\"aid\",\"SequenceNumber\":\"seq_nr\",\"Payload\":\"payload\",\"OccurredAt\":\"occurred_at\",`+
		`\"Version\":\"version\",\"TTL\":\"ttl\"}"}}}`), nil
}

func TestARefusedCommitIsSentOnce(t *testing.T) {
	for _, code := range []string{"AccessDeniedException", "ResourceNotFoundException", "ValidationException", "ExpiredTokenException"} {
		t.Run(code, func(t *testing.T) {
			t.Parallel()
			s := setup(t, journal.Config{})
			sent := 0
			j := s.through(t, s.onCommits(func(call int, _ func() (*http.Response, error)) (*http.Response, error) {
				sent = call
				return refuse(http.StatusBadRequest, code, "")
			}))

			_, err := j.Append(t.Context(), one("1"))

			require.Error(t, err)
			assert.Equal(t, 1, sent)
			assert.ErrorContains(t, err, "append to user-account-1, nothing written")
			s.requireNothingWritten(t, user("1"))
		})
	}
}

func TestACommitWithoutCredentialsIsNotSent(t *testing.T) {
	eachLayout(t, func(t *testing.T, s store) {
		failing := dynamodb.New(s.client.Options(), func(o *dynamodb.Options) { o.Credentials = noCredentials{} })
		client := &meddler{Client: s.client}
		client.transact = func(_ int, in *dynamodb.TransactWriteItemsInput, _ func() (*dynamodb.TransactWriteItemsOutput, error)) (*dynamodb.TransactWriteItemsOutput, error) {
			return failing.TransactWriteItems(t.Context(), in)
		}

		_, err := s.through(t, client).Append(t.Context(), one("1"))

		assertOnly(t, err, journal.ErrAccess)
		assert.ErrorContains(t, err, "the vault is closed")
		assert.ErrorContains(t, err, "check the credentials")
		assert.Equal(t, 1, client.calls["transact"])
	})
}

// Nothing listens on port 1, so the request has certainly not arrived.
func TestACommitThatFindsNobodyListeningIsNotUnknown(t *testing.T) {
	eachLayout(t, func(t *testing.T, s store) {
		nobody := dynamodb.New(s.client.Options(), func(o *dynamodb.Options) {
			o.BaseEndpoint, o.RetryMaxAttempts, o.HTTPClient = aws.String("http://127.0.0.1:1"), 1, &http.Client{}
		})
		client := &meddler{Client: s.client}
		client.transact = func(_ int, in *dynamodb.TransactWriteItemsInput, _ func() (*dynamodb.TransactWriteItemsOutput, error)) (*dynamodb.TransactWriteItemsOutput, error) {
			return nobody.TransactWriteItems(t.Context(), in)
		}

		_, err := s.through(t, client, impatient).Append(t.Context(), one("1"))

		assertOnly(t, err, journal.ErrUnavailable)
		assert.ErrorContains(t, err, "nothing written")
		assert.ErrorContains(t, err, "connection refused")
	})
}

func TestAMissingTableOrIndexIsNamed(t *testing.T) {
	onClassic(t, func(t *testing.T, s store) {
		c := s.Config()
		j := s.through(t, s.client, func(c *journal.Config) {
			c.Classic.Indexes.JournalTail, c.Classic.Indexes.JournalAggregate = "no-tail", "no-aggregates"
		})
		_, err := j.TailShard(t.Context(), storage.TailQuery{AggregateType: "user-account"})
		assertOnly(t, err, journal.ErrTableMissing)
		assert.ErrorContains(t, err, "no-tail")
		err = firstError(t.Context(), j, 20)
		assertOnly(t, err, journal.ErrTableMissing)
		assert.ErrorContains(t, err, "no-aggregates")

		_, err = s.client.DeleteTable(t.Context(), &dynamodb.DeleteTableInput{TableName: &c.Tables.Snapshot})
		require.NoError(t, err)
		_, err = s.Append(t.Context(), one("1"))
		assertOnly(t, err, journal.ErrTableMissing)
		assert.ErrorContains(t, err, c.Tables.Snapshot)
		_, err = s.Head(t.Context(), user("1"))
		assertOnly(t, err, journal.ErrTableMissing)
		assert.ErrorContains(t, err, fmt.Sprintf("%q", c.Tables.Snapshot))
	})
}

func TestAnAggregateWithoutEventsIsNotFound(t *testing.T) {
	eachLayout(t, func(t *testing.T, s store) {
		_, err := s.Head(t.Context(), user("1"))
		assertOnly(t, err, journal.ErrNotFound)
		assert.ErrorContains(t, err, `"1" of type "user-account" has no events`)
	})
}
