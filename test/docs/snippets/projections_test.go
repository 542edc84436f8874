package snippets

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/ThreeDotsLabs/watermill"
	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/assert"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/projection"
	"github.com/millrace-dev/millrace/projection/readmodel"
	"github.com/millrace-dev/millrace/repository"
	"github.com/millrace-dev/millrace/subscriber"
	"github.com/millrace-dev/millrace/subscriber/groups"
)

func TestAProjectionSumsEvents(t *testing.T) {
	t.Parallel()
	b := open(t)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	account := b.write(ctx, "42")
	project(b.client, b.j, b.router)
	b.run(t)
	b.wait(ctx, "balances", account)
	assert.Equal(t, "70", shown(ctx, b.client, balances.Name, "42"))
}

func project(client *dynamodb.Client, j *journal.Journal, router *message.Router) {
	p, err := projection.New(client, projection.Config{},
		projection.On(func(_ context.Context, e Deposited, r *journal.Record) ([]projection.Write, error) {
			return []projection.Write{projection.Update(balance("balances", r.Aggregate, e.Amount))}, nil
		}),
		projection.On(func(_ context.Context, e Withdrawn, r *journal.Record) ([]projection.Write, error) {
			return []projection.Write{projection.Update(balance("balances", r.Aggregate, -e.Amount))}, nil
		}),
	)
	check(err)
	sub, err := subscriber.NewSubscriber(subscriber.Config{Journal: j, ConsumerGroup: "balances"}, nil)
	check(err)
	router.AddConsumerHandler("balances", "account", sub, p.Handle)
}

func TestAProjectionSumsRunsOfEvents(t *testing.T) {
	t.Parallel()
	b := open(t)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	account := b.write(ctx, "42")
	sub, err := subscriber.NewSubscriber(subscriber.Config{Journal: b.j, ConsumerGroup: "balances"}, nil)
	check(err)
	b.router.AddConsumerHandler("balances", "account", sub, inBatches(b.client).Handle)
	b.run(t)
	b.wait(ctx, "balances", account)
	assert.Equal(t, "70", shown(ctx, b.client, balances.Name, "42"))
}

func inBatches(client *dynamodb.Client) *projection.Projection {
	p, err := projection.NewBatch(client, projection.Config{MaxRun: 100},
		func(_ context.Context, sum int, run projection.Run) ([]projection.Write, error) {
			return []projection.Write{projection.Update(balance("balances", run.Aggregate, sum))}, nil
		},
		projection.Fold(func(sum *int, e Deposited, _ *journal.Record) error { *sum += e.Amount; return nil }),
		projection.Fold(func(sum *int, e Withdrawn, _ *journal.Record) error { *sum -= e.Amount; return nil }),
	)
	check(err)
	return p
}

func TestRowsSumEvents(t *testing.T) {
	t.Parallel()
	b := open(t)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	account := b.write(ctx, "42")
	toRows(b.client, b.j, b.router)
	b.run(t)
	b.wait(ctx, "balances", account)
	assert.Equal(t, "70", shown(ctx, b.client, balances.Name, "42"))
}

func toRows(client *dynamodb.Client, j *journal.Journal, router *message.Router) {
	inRow := projection.OnRow(func(_ context.Context, e Withdrawn, r *journal.Record) (projection.RowUpdate, error) {
		u := balance("", r.Aggregate, -e.Amount)
		return projection.RowUpdate{Expression: *u.UpdateExpression, Values: u.ExpressionAttributeValues}, nil
	})
	rows, err := projection.NewRows(client, projection.RowTable{Table: balances}, projection.Config{},
		projection.OnRow(func(_ context.Context, e Deposited, _ *journal.Record) (projection.RowUpdate, error) {
			by := &types.AttributeValueMemberN{Value: fmt.Sprint(e.Amount)}
			return projection.RowUpdate{Expression: "ADD balance :by", Values: map[string]types.AttributeValue{":by": by}}, nil
		}),
		inRow, // the other reaction
	)
	check(err)
	sub, err := subscriber.NewSubscriber(subscriber.Config{Journal: j, ConsumerGroup: "balances", Positions: rows}, nil)
	check(err)
	router.AddConsumerHandler("balances", "account", sub, rows.Handle)
}

func TestAProjectionUpcastsEvents(t *testing.T) {
	t.Parallel()
	b := open(t)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	storeOld(t, b.j)
	sub, err := subscriber.NewSubscriber(subscriber.Config{Journal: b.j, ConsumerGroup: "balances"}, nil)
	check(err)
	b.router.AddConsumerHandler("balances", "account", sub, upcasting(b.client).Handle)
	b.run(t)
	account, err := b.accounts.NewAggregate("42")
	check(err)
	account.Version = 1
	b.wait(ctx, "balances", account)
	assert.Equal(t, "5", shown(ctx, b.client, balances.Name, "42"))
}

func upcasting(client *dynamodb.Client) *projection.Projection {
	reaction := projection.On(func(_ context.Context, e Deposited, r *journal.Record) ([]projection.Write, error) {
		return []projection.Write{projection.Update(balance("balances", r.Aggregate, e.Amount))}, nil
	})
	type depositedInCents struct{ Cents int }
	accounts := definition.WithUpcasters(aggregate.Upcast("account.deposited.v0", func(old depositedInCents) Deposited {
		return Deposited{Amount: old.Cents / 100}
	}))
	p, err := projection.New(client, projection.Config{Definitions: []aggregate.AnyDefinition{accounts}}, reaction)
	check(err)
	return p
}

func TestAGenerationIsBuiltAndServes(t *testing.T) {
	t.Parallel()
	b := open(t)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	b.write(ctx, "42")
	check(readmodel.CreateTable(ctx, b.client, ""))
	table := generations(ctx, b)
	assert.Equal(t, "balances_2", table)
	assert.Equal(t, "70", shown(ctx, b.client, table, "42"))
}

func generations(ctx context.Context, b *bank) string {
	client, j := b.client, b.j
	model, err := readmodel.Open(ctx, client, readmodel.Config{
		Name: "balances", Journal: j, Topics: []string{"account"}, Forms: []string{"1"},
	})
	check(err)
	// Run runs this for each generation, until ctx ends.
	consume := func(ctx context.Context, g readmodel.Generation) error {
		table := g.Table("balances")
		if err := projection.CreateTable(ctx, client, projection.Table{Name: table, PartitionKey: "id"}); err != nil {
			return err
		}
		p, err := projection.New(client, projection.Config{},
			projection.On(func(_ context.Context, e Deposited, r *journal.Record) ([]projection.Write, error) {
				return []projection.Write{projection.Update(balance(table, r.Aggregate, e.Amount))}, nil
			}),
			projection.On(func(_ context.Context, e Withdrawn, r *journal.Record) ([]projection.Write, error) {
				return []projection.Write{projection.Update(balance(table, r.Aggregate, -e.Amount))}, nil
			}))
		if err != nil {
			return err
		}
		sub, err := subscriber.NewSubscriber(subscriber.Config{Journal: j, ConsumerGroup: g.Group()}, nil)
		if err != nil {
			return err
		}
		router, err := message.NewRouter(message.RouterConfig{}, watermill.NopLogger{})
		if err != nil {
			return err
		}
		router.AddConsumerHandler(g.Group(), "account", sub, p.Handle)
		return router.Run(ctx)
	}
	ended := make(chan error, 1)
	go func() { ended <- model.Run(ctx, consume) }()

	g, err := model.Serving(ctx) // in a query: the generation to read
	check(err)
	fmt.Println("read the table", g.Table("balances"))

	next, err := model.Begin(ctx)
	check(err)
	check(model.CatchUp(ctx, next, nil))
	check(model.Switch(ctx, next))
	return next.Table("balances")
}

func TestAReaderReadsTheGenerationThatServes(t *testing.T) {
	t.Parallel()
	serving := readmodel.Generation{Model: "tasks", Number: 2}
	reader := projection.Reader[string]{Table: projection.Table{Name: "tasks", PartitionKey: "id"}}
	reader.Name, reader.Table.Name = "tasks", serving.Table("tasks")
	assert.Equal(t, "tasks_2", reader.Table.Name)
	assert.Equal(t, "tasks", reader.Name)
}

func TestRowsAreComputedFromStates(t *testing.T) {
	t.Parallel()
	b := open(t)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	account := b.write(ctx, "42")
	accounts, err := repository.New(b.j, definition, repository.Config{})
	check(err)
	rows := fromStates(b.client, accounts)
	sub, err := subscriber.NewSubscriber(subscriber.Config{
		Journal: b.j, ConsumerGroup: "balances", Positions: rows, LatestOnly: true, Timing: subscriber.Timing{ReconcileInterval: time.Second},
	}, nil)
	check(err)
	b.router.AddConsumerHandler("balances", "account", sub, rows.Handle)
	b.run(t)
	check(groups.New(b.j, groups.WithPositions(rows)).WaitApplied(ctx, "balances", account.ID, account.Version))
	assert.Equal(t, "70", shown(ctx, b.client, balances.Name, "42"))
}

func fromStates(client *dynamodb.Client, accounts *repository.Repository[Account]) *projection.Rows {
	balanceOf := projection.OnState(accounts, func(_ context.Context, a repository.Aggregate[Account]) (projection.RowUpdate, error) {
		is := &types.AttributeValueMemberN{Value: fmt.Sprint(a.State.Balance)}
		return projection.RowUpdate{Expression: "SET balance = :is", Values: map[string]types.AttributeValue{":is": is}}, nil
	})
	rows, err := projection.NewRows(client, projection.RowTable{Table: balances}, projection.Config{}, balanceOf)
	check(err)
	return rows
}
