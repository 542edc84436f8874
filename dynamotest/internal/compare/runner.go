package compare

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// Runner runs worlds on two databases, one world at a time.
type Runner struct {
	Left, Right *dynamodb.Client

	// Explain is called for each difference. A difference that it explains is not in the results.
	Explain func(d Difference) (Known, bool)
}

// Result is the result of some worlds.
type Result struct {
	Operations  int
	Differences []Difference
	Explained   map[string]int // by the name of the known difference
	Messages    map[string]*Messages
	Coverage    Coverage
}

// Messages are two different messages of the same error.
type Messages struct {
	Count       int
	Left, Right string
	Operation   Operation
}

// runs makes the tokens of each run unique.
var runs atomic.Int64

// Run runs the operations of a world and adds to the result. It removes all tables first.
//
// After an operation that may have changed the databases differently, it undoes the operation in
// both: it deletes the written items, or the table. So one difference does not cause the next one.
func (r *Runner) Run(ctx context.Context, w World, result *Result) error {
	token := newToken()
	if err := r.both(func(client *dynamodb.Client) error { return removeTables(ctx, client) }); err != nil {
		return fmt.Errorf("remove the tables of the world before: %w", err)
	}
	for step, operation := range w.Operations {
		left, right := r.call(ctx, operation, token)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if errors.Is(left.Err, net.ErrClosed) || errors.Is(right.Err, net.ErrClosed) {
			// Rarely, a connection to DynamoDB Local breaks at a large reply. It is then not known
			// whether the operation took effect.
			result.Coverage["world ended by a broken connection"]++
			return nil
		}
		result.Operations++
		result.Coverage.count(operation, left)
		if operation.changesTables() {
			err := r.both(func(client *dynamodb.Client) error { return waitUntilActive(ctx, client) })
			if errors.Is(err, errStuck) {
				result.Coverage["world ended by an index that did not become active"]++
				return nil
			}
			if err != nil {
				return fmt.Errorf("wait for the tables: %w", err)
			}
		}
		where := differences(nil, "", operation.normal(left, w.Big), operation.normal(right, w.Big))
		if len(where) == 0 {
			result.message(operation, left, right)
			continue
		}
		d := Difference{w, step, operation, left, right, where}
		k, ok := r.Explain(d)
		if ok {
			result.Explained[k.Name]++
		} else {
			result.Differences = append(result.Differences, d)
		}
		if k.IsPlace == nil && (left.Err == nil || right.Err == nil) {
			r.undo(ctx, operation)
			token = newToken() // one side may remember the token of this operation
		}
	}
	return nil
}

func newToken() string { return fmt.Sprintf("%x-%x-", time.Now().UnixNano(), runs.Add(1)) }

// NewResult returns an empty result.
func NewResult() *Result {
	return &Result{Explained: map[string]int{}, Messages: map[string]*Messages{}, Coverage: Coverage{}}
}

func (r *Result) message(o Operation, left, right Reply) {
	l, m := left.Message(), right.Message()
	if left.Err == nil || l == m || left.Code() == "TransactionCanceledException" {
		return
	}
	kind := left.Code() + ": " + pattern(l) + " / " + pattern(m)
	if r.Messages[kind] == nil {
		r.Messages[kind] = &Messages{Left: l, Right: m, Operation: o}
	}
	r.Messages[kind].Count++
}

func (r *Runner) call(ctx context.Context, o Operation, token string) (left, right Reply) {
	var wait sync.WaitGroup
	wait.Add(1)
	go func() {
		defer wait.Done()
		left = o.call(ctx, r.Left, token)
	}()
	right = o.call(ctx, r.Right, token)
	wait.Wait()
	return left, right
}

func (r *Runner) both(do func(client *dynamodb.Client) error) error {
	failed := make(chan error, 1)
	go func() { failed <- do(r.Left) }()
	err := do(r.Right)
	if left := <-failed; left != nil {
		return fmt.Errorf("left: %w", left)
	}
	if err != nil {
		return fmt.Errorf("right: %w", err)
	}
	return nil
}

func (r *Runner) undo(ctx context.Context, o Operation) {
	var table *string
	switch in := o.Input.(type) {
	case *dynamodb.CreateTableInput:
		table = in.TableName
	case *dynamodb.UpdateTableInput:
		table = in.TableName
	case *dynamodb.DeleteTableInput:
		table = in.TableName
	case *dynamodb.UpdateTimeToLiveInput:
		table = in.TableName
	}
	_ = r.both(func(client *dynamodb.Client) error {
		if table != nil {
			_, _ = client.DeleteTable(ctx, &dynamodb.DeleteTableInput{TableName: table})
			return waitUntilActive(ctx, client)
		}
		schemas := map[string][]types.KeySchemaElement{}
		for _, written := range o.writes() {
			schema, ok := schemas[written.table]
			if !ok {
				out, err := client.DescribeTable(ctx, &dynamodb.DescribeTableInput{TableName: &written.table})
				if err != nil {
					continue
				}
				schema = out.Table.KeySchema
				schemas[written.table] = schema
			}
			key := item{}
			for _, element := range schema {
				key[*element.AttributeName] = written.key[*element.AttributeName]
			}
			// An item that cannot be deleted could not be written either.
			_, _ = client.DeleteItem(ctx, &dynamodb.DeleteItemInput{TableName: &written.table, Key: key})
		}
		return nil
	})
}

// removeTables removes all tables.
func removeTables(ctx context.Context, client *dynamodb.Client) error {
	out, err := client.ListTables(ctx, &dynamodb.ListTablesInput{})
	if err != nil {
		return err
	}
	for _, name := range out.TableNames {
		if _, err := client.DeleteTable(ctx, &dynamodb.DeleteTableInput{TableName: &name}); err != nil {
			return err
		}
	}
	return waitUntilActive(ctx, client)
}

// errStuck reports that DynamoDB Local hangs. This happens if a new index meets an item that it
// cannot contain. DynamoDB Local then also refuses to delete other indexes.
var errStuck = errors.New("has not become active")

// waitUntilActive waits until all tables and indexes are active.
func waitUntilActive(ctx context.Context, client *dynamodb.Client) error {
	deadline := time.Now().Add(time.Second)
	for {
		busy, err := changing(ctx, client)
		switch {
		case err != nil:
			return err
		case busy == "":
			return nil
		case time.Now().After(deadline):
			return fmt.Errorf("%s %w", busy, errStuck)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(2 * time.Millisecond):
		}
	}
}

func changing(ctx context.Context, client *dynamodb.Client) (string, error) {
	list, err := client.ListTables(ctx, &dynamodb.ListTablesInput{})
	if err != nil {
		return "", err
	}
	for _, name := range list.TableNames {
		out, err := client.DescribeTable(ctx, &dynamodb.DescribeTableInput{TableName: &name})
		if err != nil {
			return name, nil //nolint:nilerr // the table was deleted in between
		}
		if out.Table.TableStatus != types.TableStatusActive {
			return name, nil
		}
		for _, x := range out.Table.GlobalSecondaryIndexes {
			if x.IndexStatus != types.IndexStatusActive {
				return fmt.Sprintf("%s/%s (%s)", name, aws.ToString(x.IndexName), x.IndexStatus), nil
			}
		}
	}
	return "", nil
}
