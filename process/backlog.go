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
	"github.com/millrace-dev/millrace/internal/units"
	"github.com/millrace-dev/millrace/journal"
)

// Backlog lists the pending work of process managers: timeouts that are set, commands that are
// stored and not sent, and open processes. It is for operators' tools, and needs no
// definition. It is safe for concurrent use.
type Backlog struct {
	client journal.Client
	table  string
}

// NewBacklog returns the backlog of all managers with that [Config].Table. An empty name means
// [DefaultTable]. It makes no requests.
func NewBacklog(client journal.Client, table string) *Backlog {
	if table == "" {
		table = DefaultTable
	}
	return &Backlog{client: client, table: table}
}

// Pending is a timeout that is set, or the commands of a step that are stored and not sent.
type Pending struct {
	Process aggregate.ID // the process
	// Row identifies the entry within the process: "timeout/" and the name of the timeout, or
	// "commands/" and the id of an input.
	Row string
	// Timeout is the name of the timeout, or empty for commands.
	Timeout string
	// Input is the id of the input that led to the commands, or empty for a timeout.
	Input    string
	Commands []PendingCommand // the commands that are not sent yet
	// At is when the timeout is due, or when the commands were stored.
	At time.Time
	// Next is when a manager handles it. It is At for a timeout without an attempt, and otherwise
	// [Config].RetryAfter after the commands were stored or the last attempt began.
	Next time.Time
	// Attempts is how often [Manager.Run] has begun to handle it. The last attempt may be running.
	Attempts int
	// Failure is the error of the last attempt that failed, at most 500 bytes, or empty if none
	// failed.
	Failure string

	token string
}

// PendingCommand is the Message of a command as it will be sent to a Topic. A failed attempt may
// have sent it already.
type PendingCommand struct {
	Topic   string
	Message *message.Message
}

// BacklogQuery selects the results of [Backlog.Pending] and [Backlog.OpenProcesses]. The zero value
// selects everything.
type BacklogQuery struct {
	// Type is the type of the processes. Default: all types.
	Type string
	// ID is the id of one process. It requires Type. Default: all processes.
	ID string
	// Before selects results whose Pending.At or OpenProcess.Begun is before that time. With the
	// current time, Pending returns the overdue timeouts, and commands. Default: all.
	Before time.Time
}

// Pending yields pending timeouts and commands: those of one process in the order of Pending.Row,
// otherwise in no order. The sequence ends with the first error.
//
// It costs half a read unit for each 4 KB of the whole table, eventually consistent, including rows
// that the query does not select. The table holds only pending work, a small row for each open
// process, and one row for each type. For one process it costs one read unit for each 4 KB that is
// pending there, strongly consistent.
//
// Errors: [*ConfigError] for an ID without a Type, journal.ErrTableMissing, journal.ErrThrottled,
// journal.ErrAccess, and the error of ctx.
func (b *Backlog) Pending(ctx context.Context, query BacklogQuery) iter.Seq2[Pending, error] {
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

// rows returns the rows of open processes, or the other rows of processes.
func (b *Backlog) rows(ctx context.Context, query BacklogQuery, open bool) iter.Seq2[item, error] {
	read := b.scan(query, open)
	if query.ID != "" {
		read = b.query(query, open)
	}
	return func(yield func(item, error) bool) {
		if query.ID != "" && query.Type == "" {
			yield(nil, &ConfigError{"Query.Type", "is empty, and an ID alone does not identify a process: set both"})
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

// page reads some rows, and returns the key after which the next ones begin.
type page func(ctx context.Context, start item) (rows []item, next item, err error)

func (b *Backlog) query(query BacklogQuery, open bool) page {
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

func (b *Backlog) scan(query BacklogQuery, open bool) page {
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

// processOf returns the process of a row.
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

// Retry makes p due, so that a manager handles it within its [Config].PollInterval instead of after
// [Config].RetryAfter. A timeout does not fire before Pending.At. Retry costs one write unit and
// two of the index.
//
// If a manager is handling p, it is handled twice: the step of a timeout still happens once, and
// commands are sent again with the same UUIDs.
//
// Errors: [ErrNotPending], and those of Pending.
func (b *Backlog) Retry(ctx context.Context, p Pending) error {
	due := p.At
	if due.IsZero() {
		due = time.UnixMilli(0)
	}
	still, names, values := p.still()
	names["#d"], values[":due"] = dueAttribute, timeValue(due)
	_, err := units.Send(ctx, &dynamodb.UpdateItemInput{
		TableName: &b.table, Key: rowKey(p.Process, p.Row), UpdateExpression: aws.String("SET #d = :due"),
		ConditionExpression: &still, ExpressionAttributeNames: names, ExpressionAttributeValues: values,
	}, b.client.UpdateItem, nil)
	return b.explain("retry", p, err)
}

// Drop deletes p without firing or sending it. It costs two write units, or more if the row is
// larger than 1 KB. It changes nothing else of the process.
//
// A dropped timeout never fires. The process does not learn of it: if it waits for nothing else, it
// waits forever. Dropped commands are not sent, though the process counts them as sent. If an
// attempt failed, the commands before the failed one may have been sent already. Pending.Commands
// holds all of them, so that an operator can do their work in another way.
//
// If a manager is handling p at the same time, a timeout either has fired or does not fire, and
// commands that are being published arrive.
//
// Errors: [ErrNotPending], and those of Pending.
func (b *Backlog) Drop(ctx context.Context, p Pending) error {
	still, names, values := p.still()
	if len(values) == 0 {
		values = nil
	}
	_, err := units.Send(ctx, &dynamodb.DeleteItemInput{
		TableName: &b.table, Key: rowKey(p.Process, p.Row), ConditionExpression: &still, ExpressionAttributeNames: names, ExpressionAttributeValues: values,
	}, b.client.DeleteItem, nil)
	return b.explain("drop", p, err)
}

// still returns the condition that the row has not changed since it was read.
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
