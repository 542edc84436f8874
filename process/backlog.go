package process

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strconv"
	"strings"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/internal/dynamo"
	"github.com/millrace-dev/millrace/journal"
)

// Backlog is what process managers have left to do: timeouts that are set, commands that are stored
// and not sent, and processes that are not over. It is for those who operate them, and needs no
// definition. It is safe for concurrent use.
type Backlog struct {
	client journal.Client
	table  string
}

// NewBacklog returns the backlog of all managers whose [Config].Table is that table; an empty name
// is [DefaultTable]. It makes no requests.
func NewBacklog(client journal.Client, table string) *Backlog {
	if table == "" {
		table = DefaultTable
	}
	return &Backlog{client: client, table: table}
}

// Pending is a timeout that is set, or the commands of a step that are stored and not sent.
type Pending struct {
	Process aggregate.ID
	// Row identifies it within the process: "timeout/" with a name, or "commands/" with the id
	// of an input.
	Row string
	// Timeout is its name, if it is one.
	Timeout string
	// Input is the id of the input that led to the commands, if they are some.
	Input    string
	Commands []PendingCommand
	// At is when the timeout is due, or when the commands were stored.
	At time.Time
	// Next is when a manager takes it up. It is At of a timeout that none has taken up, and
	// [Config].RetryAfter later than the last attempt of others.
	Next time.Time
	// Attempts is how often [Manager.Run] has taken it up. One may be under way.
	Attempts int
	// Failure is the error of the last attempt that failed, cut after 500 bytes; empty if none has.
	Failure string

	token string
}

// PendingCommand is a command as it will be sent. Before it failed, it may have been.
type PendingCommand struct {
	Topic   string
	Message *message.Message
}

// Query selects what [Backlog.Pending] and [Backlog.Open] return. The zero value is everything.
type Query struct {
	// Type is that of the processes.
	Type string
	// ID is that of one process of the Type, which is required then.
	ID string
	// Before, if not zero: only what has a Pending.At, or an OpenProcess.Begun, before that time.
	// With the time of now, Pending returns the timeouts that are overdue, and commands.
	Before time.Time
}

// Pending returns what is pending, in no order, or of one process in that of rows. It ends with the
// first error.
//
// It costs half a read unit for each 4 KB of the whole table, eventually consistent, whatever the
// query leaves out; the table has nothing but what is pending and a small row for each process that
// is open. Of one process it costs a read unit for each 4 KB that is pending there, strongly
// consistent.
//
// Errors: [*ConfigError] for an ID without a Type, journal.ErrTableMissing, journal.ErrThrottled,
// journal.ErrAccess, the context's.
func (b *Backlog) Pending(ctx context.Context, query Query) iter.Seq2[Pending, error] {
	return func(yield func(Pending, error) bool) {
		for row, err := range b.rows(ctx, query, false) {
			if err != nil {
				yield(Pending{}, fmt.Errorf("read what is pending: %w", err))
				return
			}
			if !yield(pendingOf(row), nil) {
				return
			}
		}
	}
}

// rows returns the rows of open processes, or those of what is pending.
func (b *Backlog) rows(ctx context.Context, query Query, open bool) iter.Seq2[item, error] {
	read := b.scan(query, open)
	if query.ID != "" {
		read = b.query(query, open)
	}
	return func(yield func(item, error) bool) {
		if query.ID != "" && query.Type == "" {
			yield(nil, &ConfigError{"Query.Type", "is empty, and an ID is that of one process of a type: give both"})
			return
		}
		var start item
		for {
			var rows []item
			var err error
			if rows, start, err = read(ctx, start); err != nil {
				yield(nil, explain(err, b.table))
				return
			}
			for _, row := range rows {
				name := text(row[skey])
				if name == queuesRow || (name == openRow) != open {
					continue
				}
				if !yield(row, nil) {
					return
				}
			}
			if start == nil {
				return
			}
		}
	}
}

// page reads some rows, and returns where the next ones begin.
type page func(ctx context.Context, start item) (rows []item, next item, err error)

func (b *Backlog) query(query Query, open bool) page {
	key := rowKey(aggregate.ID{Type: query.Type, Value: query.ID}, openRow)
	condition, names, values := "#p = :p", map[string]string{"#p": pkey}, item{":p": key[pkey]}
	if open {
		condition, names["#s"], values[":s"] = condition+" AND #s = :s", skey, key[skey]
	}
	filter := onlyBefore(query.Before, names, values)
	return func(ctx context.Context, start item) ([]item, item, error) {
		out, err := dynamo.Within(ctx, &dynamodb.QueryInput{
			TableName: &b.table, ConsistentRead: aws.Bool(true), KeyConditionExpression: &condition, FilterExpression: joined(filter),
			ExpressionAttributeNames: names, ExpressionAttributeValues: values, ExclusiveStartKey: start,
		}, b.client.Query, nil)
		if err != nil {
			return nil, nil, err
		}
		return out.Items, out.LastEvaluatedKey, nil
	}
}

func (b *Backlog) scan(query Query, open bool) page {
	is := "<>"
	if open {
		is = "="
	}
	names, values := map[string]string{"#s": skey}, item{":s": textValue(openRow)}
	filter := append(onlyBefore(query.Before, names, values), "#s "+is+" :s")
	if query.Type != "" {
		names["#p"], values[":p"] = pkey, textValue(query.Type+separator)
		filter = append(filter, "begins_with(#p, :p)")
	}
	return func(ctx context.Context, start item) ([]item, item, error) {
		out, err := dynamo.Within(ctx, &dynamodb.ScanInput{
			TableName: &b.table, FilterExpression: joined(filter), ExpressionAttributeNames: names, ExpressionAttributeValues: values, ExclusiveStartKey: start,
		}, b.client.Scan, nil)
		if err != nil {
			return nil, nil, err
		}
		return out.Items, out.LastEvaluatedKey, nil
	}
}

func onlyBefore(at time.Time, names map[string]string, values item) (filter []string) {
	if at.IsZero() {
		return nil
	}
	names["#at"], values[":at"] = atAttribute, timeValue(at)
	return []string{"#at < :at"}
}

func joined(filter []string) *string {
	if len(filter) == 0 {
		return nil
	}
	return aws.String(strings.Join(filter, " AND "))
}

// processOf is the process of a row.
func processOf(row item) (id aggregate.ID) {
	id.Type, id.Value, _ = strings.Cut(text(row[pkey]), separator)
	return id
}

func pendingOf(row item) Pending {
	p := Pending{
		Process: processOf(row), Row: text(row[skey]), At: timeOf(row[atAttribute]), Next: timeOf(row[dueAttribute]), Failure: text(row[failureAttribute]), token: text(row[tokenAttribute]),
	}
	if n, ok := row[attemptsAttribute].(*types.AttributeValueMemberN); ok {
		p.Attempts, _ = strconv.Atoi(n.Value)
	}
	name, isTimeout := strings.CutPrefix(p.Row, timeoutPrefix)
	input, isCommands := strings.CutPrefix(p.Row, commandsPrefix)
	var err error
	switch {
	case isTimeout:
		p.Timeout = name
	case isCommands:
		p.Input = input
		var commands []command
		commands, err = commandsOf(row)
		for _, c := range commands {
			p.Commands = append(p.Commands, PendingCommand{Topic: c.topic, Message: c.message})
		}
	default:
		err = errUnknownRow
	}
	if err != nil && p.Failure == "" {
		p.Failure = err.Error()
	}
	return p
}

// Retry has a manager take it up within its [Config].PollInterval, instead of when
// [Config].RetryAfter is over. A timeout that is not due stays as it is. It takes one write unit
// and two of the index.
//
// If somebody is at it just now it is done twice: a timeout's step happens once all the same, and
// commands are sent again with the same UUIDs.
//
// Errors: [ErrNotPending], those of Pending.
func (b *Backlog) Retry(ctx context.Context, p Pending) error {
	due := p.At
	if due.IsZero() {
		due = time.UnixMilli(0)
	}
	still, names, values := p.still()
	names["#d"], values[":due"] = dueAttribute, timeValue(due)
	_, err := b.client.UpdateItem(ctx, &dynamodb.UpdateItemInput{
		TableName: &b.table, Key: rowKey(p.Process, p.Row), UpdateExpression: aws.String("SET #d = :due"),
		ConditionExpression: &still, ExpressionAttributeNames: names, ExpressionAttributeValues: values,
	})
	return b.explain("retry", p, err)
}

// Drop deletes it without sending it. It takes two write units, or more if the row is over 1 KB.
//
// A timeout that is dropped never fires, as if its process had cancelled it, but the process does
// not know: one that waits for nothing else waits forever. Commands that are dropped are not sent,
// though their process takes them for sent; those before the one that fails were, perhaps. All of
// them are in Pending.Commands, to be seen to in another way. Nothing else of the process changes.
// A manager that is at it just now does no harm: the timeout has fired before or does not fire, and
// commands that are on their way arrive.
//
// Errors: [ErrNotPending], those of Pending.
func (b *Backlog) Drop(ctx context.Context, p Pending) error {
	still, names, values := p.still()
	if len(values) == 0 {
		values = nil
	}
	_, err := b.client.DeleteItem(ctx, &dynamodb.DeleteItemInput{
		TableName: &b.table, Key: rowKey(p.Process, p.Row), ConditionExpression: &still, ExpressionAttributeNames: names, ExpressionAttributeValues: values,
	})
	return b.explain("drop", p, err)
}

// still is the condition that the row is what was read.
func (p Pending) still() (condition string, names map[string]string, values item) {
	if p.token == "" {
		return "attribute_exists(#p)", map[string]string{"#p": pkey}, item{}
	}
	return "#t = :token", map[string]string{"#t": tokenAttribute}, item{":token": textValue(p.token)}
}

func (b *Backlog) explain(what string, p Pending, err error) error {
	switch {
	case err == nil:
		return nil
	case isConditionFalse(err):
		err = ErrNotPending
	default:
		err = explain(err, b.table)
	}
	return fmt.Errorf("%s %s of process %s: %w", what, p.Row, p.Process, err)
}

var errUnknownRow = errors.New("the row is neither a timeout nor commands: delete it")
