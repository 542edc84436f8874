package command_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"path"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ThreeDotsLabs/watermill/components/cqrs"
	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go"
	"github.com/aws/smithy-go/middleware"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace"
	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/cmd/millrace/internal/command"
	"github.com/millrace-dev/millrace/cmd/millrace/internal/store"
	shop "github.com/millrace-dev/millrace/command"
	"github.com/millrace-dev/millrace/internal/checkpoint"
	"github.com/millrace-dev/millrace/internal/permissions"
	"github.com/millrace-dev/millrace/internal/testdb"
	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/journal/encrypt"
	"github.com/millrace-dev/millrace/process"
	"github.com/millrace-dev/millrace/projection"
	"github.com/millrace-dev/millrace/projection/readmodel"
	"github.com/millrace-dev/millrace/publisher"
	"github.com/millrace-dev/millrace/repository"
	"github.com/millrace-dev/millrace/subscriber"
	"github.com/millrace-dev/millrace/subscriber/dedup"
	"github.com/millrace-dev/millrace/subscriber/groups"
)

// policy is a document of IAM as AWS decodes it. Resource is one ARN or several.
type policy struct {
	Version   string
	Statement []struct {
		Sid, Effect string
		Action      []string
		Resource    json.RawMessage
	}
}

const arns = "arn:aws:dynamodb:eu-west-1:123456789012:table/"

// guard is IAM: it allows what a policy has, and denies the rest.
type guard struct {
	allowed map[string][]string // patterns of ARNs, by action

	mu     sync.Mutex
	used   map[string]bool
	denied []string
}

func guardOf(t *testing.T, document string) *guard {
	t.Helper()
	var p policy
	strictly(t, []byte(document), &p)
	require.Equal(t, "2012-10-17", p.Version)
	g := &guard{allowed: map[string][]string{}, used: map[string]bool{}}
	for _, s := range p.Statement {
		require.Equal(t, "Allow", s.Effect)
		require.Regexp(t, "^[A-Za-z0-9]+$", s.Sid)
		var resources []string
		if bytes.HasPrefix(s.Resource, []byte("[")) {
			strictly(t, s.Resource, &resources)
		} else {
			resources = []string{""}
			strictly(t, s.Resource, &resources[0])
		}
		for _, action := range s.Action {
			name, found := strings.CutPrefix(action, "dynamodb:")
			require.True(t, found, action)
			g.allowed[name] = append(g.allowed[name], resources...)
		}
	}
	return g
}

// check returns what IAM answers to a request.
func (g *guard) check(request any) error {
	uses, known := permissions.Uses(request)
	if !known {
		uses = []permissions.Use{{Action: fmt.Sprintf("%T", request)}}
	}
	for _, use := range uses {
		arn := arns + use.Table
		if use.Index != "" {
			arn += "/index/" + use.Index
		}
		by := slices.IndexFunc(g.allowed[use.Action], func(pattern string) bool {
			matches, err := path.Match(pattern, arn)
			return err == nil && matches
		})
		allowed := by >= 0
		g.mu.Lock()
		if allowed {
			g.used[permissionOf(use.Action, g.allowed[use.Action][by])] = true
		} else {
			g.denied = append(g.denied, use.Action+" on "+arn)
		}
		g.mu.Unlock()
		if !allowed {
			return &smithy.GenericAPIError{Code: "AccessDeniedException", Message: "not authorized to perform " + use.Action + " on " + arn}
		}
	}
	return nil
}

// client returns a client for the same database that has the permissions of the guard alone.
func (g *guard) client(of *dynamodb.Client) *dynamodb.Client {
	return dynamodb.New(of.Options(), func(o *dynamodb.Options) {
		o.APIOptions = append(slices.Clone(o.APIOptions), func(stack *middleware.Stack) error {
			return stack.Initialize.Add(middleware.InitializeMiddlewareFunc("guard",
				func(ctx context.Context, in middleware.InitializeInput, next middleware.InitializeHandler) (middleware.InitializeOutput, middleware.Metadata, error) {
					if err := g.check(in.Parameters); err != nil {
						return middleware.InitializeOutput{}, middleware.Metadata{}, err
					}
					return next.HandleInitialize(ctx, in)
				}), middleware.Before)
		})
	})
}

// world is a database with all tables, and a shell with the permissions of a role.
type world struct {
	*shell // unrestricted
	layout journal.Layout
	role   *shell
	guard  *guard
}

// projecting are the roles that use tables of projections.
var projecting = []string{"application", "projection", "deploy", "operator-read", "operator"}

func worldOf(t *testing.T, role string, layout journal.Layout) *world {
	t.Helper()
	w := &world{shell: setup(t), layout: layout}
	args := []string{
		"schema", "--format", "iam", "--role", role, "--layout", string(layout), "--tables", "all",
		"--region", "eu-west-1", "--account", "123456789012",
	}
	if slices.Contains(projecting, role) {
		args = append(args, "--projection-table", balances.Name)
	}
	if role == "deploy" {
		args = append(args, "--projection-table", "list_*")
	}
	w.guard = guardOf(t, w.ok(t, args...))
	client := w.guard.client(w.client)
	w.role = &shell{client: client, env: w.env}
	w.role.env.Connect = func(context.Context, store.Target) (journal.Client, error) { return client, nil }
	return w
}

// tables creates all tables, without restrictions.
func (w *world) tables(t *testing.T) {
	t.Helper()
	require.NoError(t, journal.Create(t.Context(), w.client, journal.Config{Layout: w.layout, Shards: 2}))
	require.NoError(t, process.CreateTable(t.Context(), w.client, ""))
	require.NoError(t, readmodel.CreateTable(t.Context(), w.client, ""))
	require.NoError(t, dedup.CreateTable(t.Context(), w.client, dedup.TableConfig{}))
	require.NoError(t, encrypt.CreateTable(t.Context(), w.client, encrypt.KeysConfig{}))
	require.NoError(t, projection.CreateTable(t.Context(), w.client, balances))
}

var balances = projection.Table{Name: "balances", PartitionKey: "id", TimeToLive: "ttl", Indexes: []projection.Index{{Name: "by-owner", PartitionKey: "owner"}}}

// queried queries the table of balances and its index.
func (w *world) queried(t *testing.T) {
	t.Helper()
	reader := projection.Reader[projection.Row]{Client: w.role.client, Table: balances, Decode: func(row projection.Row) (projection.Row, error) { return row, nil }}
	_, _, err := reader.Get(t.Context(), "1")
	require.NoError(t, err)
	for _, q := range []projection.Query{{Partition: "1"}, {Index: "by-owner", Partition: "ada"}} {
		_, err := reader.Page(t.Context(), q)
		require.NoError(t, err)
	}
}

// encoded is the config of a journal that encrypts, with the permissions of the role.
func (w *world) encoded(t *testing.T) (journal.Config, *encrypt.Keys) {
	t.Helper()
	wrapper, err := encrypt.LocalWrapper(bytes.Repeat([]byte{1}, encrypt.KeyBytes))
	require.NoError(t, err)
	keys, err := encrypt.NewKeys(w.role.client, wrapper, encrypt.KeysConfig{})
	require.NoError(t, err)
	secret, err := encrypt.AESGCM(encrypt.Config{Keys: keys})
	require.NoError(t, err)
	return journal.Config{Encodings: []journal.Encoding{secret}}, keys
}

type (
	wallet struct{ Balance int }
	paid   struct{ Amount int }
	remind struct{ Wallet string }
)

func (paid) EventType() string                                    { return "wallet.paid.v1" }
func (e paid) Apply(w *wallet)                                    { w.Balance += e.Amount }
func (r *remind) Decide(wallet) (aggregate.Events[wallet], error) { return nil, nil }

var (
	wallets = aggregate.Define[wallet]("wallet", paid{})
	sagas   = process.Define(aggregate.Define[saga]("saga", begun{}),
		process.On(func(_ paid, in process.Input) string { return in.Source.Value }, func(saga, paid, process.Input) (process.Step[saga], error) {
			return process.Record(begun{}).Send(remind{"1"}).SetTimeout("late", time.Millisecond), nil
		}).Starts(),
		process.OnTimeout("late", func(saga, process.Input) (process.Step[saga], error) {
			return process.Record(begun{}), nil
		}),
	).EndsWhen(func(saga) bool { return false })
)

func toCommands(cqrs.CommandBusGeneratePublishTopicParams) (string, error) { return "commands", nil }

func pay(wallet) (aggregate.Events[wallet], error) { return aggregate.Events[wallet]{paid{1}}, nil }

func (w *world) repository(t *testing.T, s *shell, config journal.Config) *repository.Repository[wallet] {
	t.Helper()
	r, err := repository.New(s.open(t, config), wallets, repository.Config{Snapshots: repository.Every(2), Redundancy: &repository.Redundancy{Keep: 1}})
	require.NoError(t, err)
	return r
}

// paid stores events without restrictions.
func (w *world) paid(t *testing.T, ids ...string) {
	t.Helper()
	r := w.repository(t, w.shell, journal.Config{})
	for _, id := range ids {
		for range 3 {
			_, err := r.Execute(t.Context(), id, pay)
			require.NoError(t, err)
		}
	}
}

// subscribed handles events of wallets with a handler until n have been handled.
func (w *world) subscribed(t *testing.T, config subscriber.Config, n int, handle func(*message.Message) error) {
	t.Helper()
	config.Timing.PollInterval, config.Timing.MaxPollInterval, config.NackResendSleep = 5*time.Millisecond, 50*time.Millisecond, time.Millisecond
	sub, err := subscriber.NewSubscriber(config, nil)
	require.NoError(t, err)
	messages, err := sub.Subscribe(t.Context(), "wallet")
	require.NoError(t, err)
	deadline := time.After(patience)
	var last error
	for n > 0 {
		select {
		case msg := <-messages:
			if last = handle(msg); last != nil {
				msg.Nack()
				continue
			}
			msg.Ack()
			n--
		case <-deadline:
			require.FailNow(t, "not all messages were handled", "last error: %v", last)
		}
	}
	require.NoError(t, sub.Close())
}

func TestEachRoleNeedsNoOtherPermissionsThanItsPolicyHas(t *testing.T) {
	t.Parallel()
	for _, layout := range []journal.Layout{journal.Classic, journal.Packed} {
		t.Run(string(layout), func(t *testing.T) {
			t.Parallel()
			var guards []*guard
			t.Cleanup(func() {
				assert.Subset(t, rare, neverUsed(guards), "a policy must have no permission that nothing uses")
			})
			for role, does := range map[string]func(*testing.T, *world){
				"application": runApplication, "writer": runWriter, "consumer": runConsumer, "projection": runProjection,
				"process-manager": runProcessManager, "deploy": runDeploy, "operator-read": runReader, "operator": runOperator,
				"export": runExport, "removal": runRemoval,
			} {
				w := worldOf(t, role, layout)
				guards = append(guards, w.guard)
				t.Run(role, func(t *testing.T) {
					t.Parallel()
					does(t, w)
					assert.Empty(t, w.guard.denied)
				})
			}
			assert.Len(t, guards, len(permissions.Roles))
		})
	}
}

// rare are permissions that are not used here: for an index that has not caught up, for a batch of
// which a part must be repeated, and for writes that the application defines.
var rare = []string{
	"BatchGetItem journal", "BatchGetItem process", "DeleteItem journal", "DeleteItem snapshot", "Query snapshot/index/",
	"PutItem balances", "DeleteItem balances", "ConditionCheckItem balances",
}

// permissionOf names an action on the resources of a pattern.
func permissionOf(action, pattern string) string {
	return action + " " + strings.TrimSuffix(strings.TrimPrefix(pattern, arns), "*")
}

// neverUsed returns the permissions that no program has used.
func neverUsed(guards []*guard) []string {
	used, unused := map[string]bool{}, map[string]bool{}
	for _, g := range guards {
		maps.Copy(used, g.used)
	}
	for _, g := range guards {
		for action, patterns := range g.allowed {
			for _, pattern := range patterns {
				permission := permissionOf(action, pattern)
				if !used[permission] {
					unused[permission] = true
				}
			}
		}
	}
	return slices.Sorted(maps.Keys(unused))
}

func runWriter(t *testing.T, w *world) {
	w.tables(t)
	config, _ := w.encoded(t)
	r := w.repository(t, w.role, config)
	for range 3 {
		_, err := r.Execute(t.Context(), "1", pay, repository.WithCommandID("c"))
		require.NoError(t, err)
	}
	for range 4 {
		_, err := r.Execute(t.Context(), "1", pay)
		require.NoError(t, err)
	}
	_, err := r.LoadAtVersion(t.Context(), "1", 3)
	require.NoError(t, err)
	_, err = r.Load(t.Context(), "1")
	require.NoError(t, err)
	for range 2 {
		var tx repository.Transaction
		a := r.AddTo(&tx, "1")
		r.AddTo(&tx, "2")
		require.NoError(t, tx.Execute(t.Context(), func() error { a.Append(paid{1}); return nil }, repository.WithCommandID("d")))
	}
	p, err := publisher.NewPublisher(publisher.Config{Journal: w.role.open(t, config)}, nil)
	require.NoError(t, err)
	require.NoError(t, p.Publish("wallet", message.NewMessage("m", []byte("{}"))))
	require.NoError(t, p.Close())
}

func runConsumer(t *testing.T, w *world) {
	w.tables(t)
	config, _ := w.encoded(t)
	w.paid(t, "1", "2")
	j := w.role.open(t, config)
	keys, err := dedup.NewKeys(w.role.client, dedup.KeysConfig{Group: "a"})
	require.NoError(t, err)
	positions, err := dedup.NewPositions(w.role.client, dedup.PositionsConfig{Group: "a"})
	require.NoError(t, err)
	failed := false
	w.subscribed(t, subscriber.Config{Journal: j, ConsumerGroup: "a"}, 6, func(msg *message.Message) error {
		duplicate, err := keys.IsDuplicate(msg.Context(), msg.UUID)
		require.NoError(t, err)
		if !failed {
			failed = true
			return assert.AnError
		}
		_, err = positions.Middleware(func(*message.Message) ([]*message.Message, error) { return nil, nil })(msg)
		require.NoError(t, err, duplicate)
		return nil
	})
	w.subscribed(t, subscriber.Config{Journal: j, ConsumerGroup: "b", Start: subscriber.At(time.Now().Add(-time.Hour))}, 6, func(*message.Message) error { return nil })
}

func runProjection(t *testing.T, w *world) {
	w.tables(t)
	w.paid(t, "1", "2")
	p, err := projection.New(w.role.client, projection.Config{}, addToBalance)
	require.NoError(t, err)
	j := w.role.open(t, journal.Config{})
	w.subscribed(t, subscriber.Config{Journal: j, ConsumerGroup: "a"}, 6, p.Handle)
	rows, err := projection.NewRows(w.role.client, totals, projection.Config{}, addToTotal)
	require.NoError(t, err)
	w.subscribed(t, subscriber.Config{Journal: j, ConsumerGroup: "b", Positions: rows}, 6, rows.Handle)
	position, _, err := rows.Position(t.Context(), subscriber.GroupKey{Name: "b"}, aggregate.ID{Type: "wallet", Value: "1"})
	require.NoError(t, err)
	assert.EqualValues(t, 3, position)
	w.queried(t)
}

// totals are rows of the table of balances that are positions.
var totals = projection.RowTable{Table: projection.Table{Name: balances.Name, PartitionKey: balances.PartitionKey}, Prefix: "total#"}

var addToTotal = projection.OnRow(func(_ context.Context, e paid, _ *journal.Record) (projection.RowUpdate, error) {
	return projection.RowUpdate{
		Expression: "ADD balance :by",
		Values:     map[string]types.AttributeValue{":by": &types.AttributeValueMemberN{Value: fmt.Sprint(e.Amount)}},
	}, nil
})

var addToBalance = projection.On(func(_ context.Context, e paid, r *journal.Record) ([]projection.Write, error) {
	return []projection.Write{projection.Update(types.Update{
		TableName: &balances.Name, Key: balances.Key(r.Aggregate.Value), UpdateExpression: aws.String("ADD balance :by"),
		ExpressionAttributeValues: map[string]types.AttributeValue{":by": &types.AttributeValueMemberN{Value: fmt.Sprint(e.Amount)}},
	})}, nil
})

func runProcessManager(t *testing.T, w *world) {
	w.tables(t)
	w.paid(t, "1")
	j := w.role.open(t, journal.Config{})
	p, err := publisher.NewPublisher(publisher.Config{Journal: j}, nil)
	require.NoError(t, err)
	m, err := process.New(j, w.role.client, sagas, process.Config{Publisher: p, GeneratePublishTopic: toCommands})
	require.NoError(t, err)
	w.subscribed(t, subscriber.Config{Journal: j, ConsumerGroup: "saga"}, 3, m.Handle)
	_, err = m.Fire(t.Context())
	require.NoError(t, err)
	require.NoError(t, p.Close())
}

func runApplication(t *testing.T, w *world) {
	w.tables(t)
	config, _ := w.encoded(t)
	app, err := millrace.Open(t.Context(), w.role.client, millrace.Config{
		Journal: config, ExistingTables: true,
		Subscriber: func(_ string, c *subscriber.Config) {
			c.Timing.PollInterval, c.Timing.MaxPollInterval = 5*time.Millisecond, 20*time.Millisecond
		},
	})
	require.NoError(t, err)
	r, err := millrace.Repository(app, wallets, repository.Config{})
	require.NoError(t, err)
	_, err = millrace.Process(t.Context(), app, sagas, process.Config{PollInterval: 10 * time.Millisecond}, "wallet")
	require.NoError(t, err)
	require.NoError(t, app.HandleCommands(shop.Handler("remind", r, func(c *remind) (string, aggregate.Decision[wallet]) { return c.Wallet, c.Decide })))
	_, err = app.Project(millrace.Group{Name: "balances", Topics: []string{"wallet"}}, addToBalance)
	require.NoError(t, err)
	_, err = app.ProjectRows(millrace.Group{Name: "totals", Topics: []string{"wallet"}}, totals, addToTotal)
	require.NoError(t, err)
	model, err := app.ReadModel(t.Context(), readmodel.Config{Name: "list", Topics: []string{"wallet"}, Refresh: 10 * time.Millisecond},
		func(context.Context, readmodel.Generation) ([]projection.Reaction, error) {
			return []projection.Reaction{addToBalance}, nil
		})
	require.NoError(t, err)
	stop, err := app.Start(context.WithoutCancel(t.Context()))
	require.NoError(t, err)
	require.NoError(t, app.Ready(t.Context()))

	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	paid, err := r.Execute(ctx, "1", pay, repository.WithCommandID("c"))
	require.NoError(t, err)
	for _, group := range []string{"balances", "totals", "saga"} {
		require.NoError(t, app.Groups().WaitApplied(ctx, group, paid.ID, paid.Version))
	}
	_, err = model.Begin(ctx)
	require.NoError(t, err)
	for _, group := range []string{"balances", "totals"} {
		_, err = app.Groups().Of(group, "wallet").Lag(ctx, groups.LagOptions{})
		require.NoError(t, err)
	}
	for _, err := range app.Backlog().Due(ctx, "saga", time.Now().Add(time.Hour)) {
		require.NoError(t, err)
	}
	w.queried(t)
	require.NoError(t, stop())
}

func runDeploy(t *testing.T, w *world) {
	client := w.role.client
	w.role.ok(t, "create", "--layout", string(w.layout))
	w.role.ok(t, "create")
	require.NoError(t, process.CreateTable(t.Context(), client, ""))
	require.NoError(t, readmodel.CreateTable(t.Context(), client, ""))
	require.NoError(t, projection.CreateTable(t.Context(), client, balances))
	for _, name := range []string{"list_1", "list_2"} {
		require.NoError(t, projection.CreateTable(t.Context(), client, projection.Table{Name: name, PartitionKey: "id", TimeToLive: balances.TimeToLive}))
	}
	require.NoError(t, dedup.CreateTable(t.Context(), client, dedup.TableConfig{}))
	require.NoError(t, encrypt.CreateTable(t.Context(), client, encrypt.KeysConfig{}))
	w.role.ok(t, "restored")
	if w.layout == journal.Packed {
		w.role.ok(t, "shards", "--to", "32")
	}
}

// operated is a database with groups, a read model and processes.
func (w *world) operated(t *testing.T) {
	t.Helper()
	w.tables(t)
	w.paid(t, "1", "2", "3")
	j := w.open(t, journal.Config{})
	// A group whose rows may be deleted.
	rows, former := checkpoint.New(j), checkpoint.Key{Group: "former", Topic: "wallet"}
	_, err := rows.ChangeMembership(t.Context(), former, checkpoint.Membership{}, checkpoint.NewMembership(j.Shards(), time.Time{}))
	require.NoError(t, err)
	_, _, err = rows.StorePosition(t.Context(), checkpoint.Group{Name: "former"}, aggregate.ID{Type: "wallet", Value: "1"}, 1, 1)
	require.NoError(t, err)
	past := w.open(t, journal.Config{Now: func() time.Time { return time.Now().Add(-2 * groups.FenceTime) }})
	require.NoError(t, groups.Of(past, "former", "wallet").Remove(t.Context(), groups.RemoveOptions{}))
	inRows, err := projection.NewRows(w.client, totals, projection.Config{}, addToTotal)
	require.NoError(t, err)
	for group, fails := range map[string]bool{"audit": true, "totals": true, "list.2": false} {
		var positions subscriber.PositionStore
		start := subscriber.At(time.Now().Add(-time.Hour))
		if group == "totals" {
			positions, start = inRows, subscriber.Beginning()
		}
		sub, err := subscriber.NewSubscriber(subscriber.Config{
			Journal: j, ConsumerGroup: group, Positions: positions, Failures: subscriber.Park(1), Timing: subscriber.Timing{PollInterval: 5 * time.Millisecond, MaxPollInterval: 50 * time.Millisecond},
			Start: start,
		}, nil)
		require.NoError(t, err)
		messages, err := sub.Subscribe(t.Context(), "wallet")
		require.NoError(t, err)
		go func() {
			for msg := range messages {
				if fails {
					msg.Nack()
				} else {
					msg.Ack()
				}
			}
		}()
		require.Eventually(t, func() bool { return w.isDone(t, j, group) }, patience, 5*time.Millisecond)
		require.NoError(t, sub.Close())
	}
	m, err := readmodel.Open(t.Context(), w.client, readmodel.Config{Name: "list", Journal: j, Topics: []string{"wallet"}})
	require.NoError(t, err)
	_, err = m.Begin(t.Context())
	require.NoError(t, err)
	long := time.Now().Add(-time.Hour)
	manager, err := process.New(j, w.client, sagas, process.Config{Publisher: offline{}, GeneratePublishTopic: toCommands, Now: func() time.Time { return long }})
	require.NoError(t, err)
	for _, id := range []string{"1", "2"} {
		msg := message.NewMessageWithContext(t.Context(), "e"+id, []byte(`{}`))
		msg.Metadata = message.Metadata{"name": "wallet.paid.v1", "aggregate_type": "wallet", "aggregate_id": id}
		require.Error(t, manager.Handle(msg))
	}
}

// isDone reports whether a group has handled or parked all events.
func (w *world) isDone(t *testing.T, j *journal.Journal, group string) bool {
	t.Helper()
	parked := 0
	for _, err := range groups.Of(j, group, "wallet").Parked(t.Context(), aggregate.ID{}) {
		if err == nil {
			parked++
		}
	}
	lag, err := groups.Of(j, group, "wallet").Lag(t.Context(), groups.LagOptions{})
	return err == nil && (parked == 3 || lag.Events == 0 && group == "list.2")
}

// reads are commands that only read.
var reads = []string{
	"describe", "shards", "topics", "aggregates wallet", "stream wallet 1", "tail wallet --since 1h", "groups", "groups audit wallet", "groups totals wallet",
	"group behind totals wallet", "group parked totals wallet",
	"group behind audit wallet", "group behind audit wallet --all", "group parked audit wallet", "group skipped audit wallet", "model", "model list",
	"process list", "process list saga 1", "process list --open",
}

func runReader(t *testing.T, w *world) {
	w.operated(t)
	for _, line := range reads {
		w.role.ok(t, strings.Fields(line)...)
	}
}

func runOperator(t *testing.T, w *world) {
	w.operated(t)
	for _, line := range append(reads,
		"group pause audit wallet --wait", "group resume audit wallet", "group unpark audit wallet 1", "group skip audit wallet 2 1",
		"group retry-skipped audit wallet 2 1", "group forget-skipped audit wallet 2 1", "group skip audit wallet --all --yes",
		"group retry-skipped audit wallet --all", "group unpark audit wallet --all", "group reset-aggregate audit wallet 1 1 --yes",
		"group reconcile audit wallet", "group reset audit wallet --to beginning --yes", "group cleanup audit wallet", "group remove audit wallet --yes",
		"group unpark totals wallet 1", "group skip totals wallet 2 1", "group reset-aggregate totals wallet 2 0 --yes", "group reset totals wallet --to beginning --yes",
		"model switch list 2", "model rollback list", "model drop list 2 --yes",
		"process retry saga 1 commands/e1", "process drop saga 2 commands/e2 --yes", "process unlist saga 1",
	) {
		o := w.role.run(t, strings.Fields(line)...)
		assert.Equal(t, command.ExitOK, o.code, "millrace %s: %s", line, o.err)
	}
}

func runExport(t *testing.T, w *world) {
	w.tables(t)
	w.paid(t, "1", "2")
	for _, line := range []string{"export -", "export - --type wallet", "export - --type wallet --since 1h", "verify", "verify --type wallet --id 1"} {
		w.role.ok(t, strings.Fields(line)...)
	}
}

func runRemoval(t *testing.T, w *world) {
	w.tables(t)
	w.paid(t, "1", "2")
	config, keys := w.encoded(t)
	r := w.repository(t, w.role, config)
	require.NoError(t, r.Truncate(t.Context(), "1", 2, journal.RemoveOptions{}))
	require.NoError(t, r.Delete(t.Context(), "1", 3, journal.RemoveOptions{}))
	if w.layout == journal.Classic { // the other one has no time to live for commits
		require.NoError(t, r.Truncate(t.Context(), "2", 2, journal.RemoveOptions{After: time.Hour}))
		require.NoError(t, r.Delete(t.Context(), "2", 3, journal.RemoveOptions{After: time.Hour}))
	}
	require.NoError(t, keys.Destroy(t.Context(), aggregate.ID{Type: "wallet", Value: "1"}))

	yesterday := w.open(t, journal.Config{Now: func() time.Time { return time.Now().Add(-24 * time.Hour) }})
	p, err := publisher.NewPublisher(publisher.Config{Journal: yesterday, StreamID: "worker"}, nil)
	require.NoError(t, err)
	for range 2 {
		require.NoError(t, p.Publish("mails", message.NewMessage("", nil)))
	}
	require.NoError(t, p.Close())
	w.role.ok(t, "topic", "trim", "mails", "--keep", "1h", "--without-groups", "--yes")
}

func TestPoliciesNameOperationsOfDynamoDB(t *testing.T) {
	t.Parallel()
	s := setup(t)
	client := reflect.TypeOf(testdb.Client(t))
	for _, role := range permissions.Roles {
		for _, layout := range []string{"classic", "packed"} {
			for action, resources := range guardOf(t, s.ok(t, "schema", "--format", "iam", "--role", role.Name, "--layout", layout, "--tables", "all")).allowed {
				_, isOperation := client.MethodByName(action)
				assert.True(t, isOperation || action == "ConditionCheckItem", "%s of %s: the action of a condition in a transaction is no operation", action, role.Name)
				for _, resource := range resources {
					assert.Regexp(t, `^arn:aws:dynamodb:\*:\*:table/[a-z]+(/index/\*)?$`, resource)
				}
			}
		}
	}
}

func TestAPolicyHasOnlyTheTablesThatAreSelected(t *testing.T) {
	t.Parallel()
	s := setup(t)
	line := "schema --format iam --layout packed --role application --prefix shop- --tables journal,checkpoint --partition aws-cn --region cn-north-1 --account 123456789012"
	tables := map[string]bool{}
	for _, resources := range guardOf(t, s.ok(t, strings.Fields(line)...)).allowed {
		for _, resource := range resources {
			tables[resource] = true
		}
	}
	const arn = "arn:aws-cn:dynamodb:cn-north-1:123456789012:table/shop-"
	assert.Equal(t, map[string]bool{arn + "journal": true, arn + "journal/index/*": true, arn + "checkpoint": true}, tables)
}

func TestTablesOfProjectionsNeedARoleThatUsesThem(t *testing.T) {
	t.Parallel()
	s := setup(t)
	for _, role := range permissions.Roles {
		o := s.run(t, "schema", "--format", "iam", "--layout", "packed", "--role", role.Name, "--projection-table", "balances")
		if slices.Contains(projecting, role.Name) {
			assert.Equal(t, command.ExitOK, o.code, role.Name)
			assert.Contains(t, o.out, "table/balances", role.Name)
			continue
		}
		assert.Equal(t, command.ExitUsage, o.code, role.Name)
		assert.Contains(t, o.err, "--projection-table needs a --role that uses tables of projections: application, projection, deploy", role.Name)
	}
	for _, format := range []string{"terraform", "cloudformation"} {
		assert.Equal(t, command.ExitUsage, s.run(t, "schema", "--format", format, "--layout", "packed", "--projection-table", "balances").code, format)
		document := s.ok(t, "schema", "--format", format, "--layout", "packed", "--role", "writer", "--role", "deploy", "--projection-table", "balances_*")
		assert.Contains(t, document, "table/balances_*", format)
	}
}

func TestAWrongNameOfATableOfProjectionsIsRefused(t *testing.T) {
	t.Parallel()
	s := setup(t)
	for _, name := range []string{"*", "a*", "totals_*_1", "totals?", "totals**"} {
		o := s.run(t, "schema", "--format", "iam", "--layout", "packed", "--role", "projection", "--projection-table", name)
		assert.Equal(t, command.ExitUsage, o.code, name)
		assert.Contains(t, o.err, "--projection-table is", name)
	}
	assert.Equal(t, command.ExitUsage, s.run(t, "schema", "--format", "iam", "--layout", "packed", "--role", "projection", "--journal-table", "journal*").code)
}

func TestGenerationsAreBuiltWithExistingTables(t *testing.T) {
	t.Parallel()
	policies := [][]string{
		{"--role", "application"},
		{"--role", "deploy", "--tables", "readmodel"},
	}
	for name, used := range map[string]int{"the application creates them": 2, "somebody else creates them": 1} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := &world{shell: setup(t), layout: journal.Packed, guard: &guard{allowed: map[string][]string{}, used: map[string]bool{}}}
			for _, flags := range policies[:used] {
				args := append([]string{
					"schema", "--format", "iam", "--layout", "packed", "--projection-table", "list_*", "--region", "eu-west-1",
					"--account", "123456789012",
				}, flags...)
				for action, resources := range guardOf(t, w.ok(t, args...)).allowed {
					w.guard.allowed[action] = append(w.guard.allowed[action], resources...)
				}
			}
			if used == 1 {
				w.guard.allowed["DescribeTable"] = append(w.guard.allowed["DescribeTable"], arns+"list_*")
			}
			w.tables(t)
			client := w.guard.client(w.client)
			app, err := millrace.Open(t.Context(), client, millrace.Config{ExistingTables: true})
			require.NoError(t, err)
			built := make(chan error)
			_, err = app.ReadModel(t.Context(), readmodel.Config{Name: "list", Topics: []string{"wallet"}, Refresh: 10 * time.Millisecond},
				func(ctx context.Context, g readmodel.Generation) ([]projection.Reaction, error) {
					err := projection.CreateTable(ctx, client, projection.Table{Name: g.Table("list"), PartitionKey: "id"})
					select {
					case built <- err:
					case <-ctx.Done():
					}
					return []projection.Reaction{addToBalance}, err
				})
			require.NoError(t, err)
			stop, err := app.Start(context.WithoutCancel(t.Context()))
			require.NoError(t, err)
			first := <-built
			if used == 1 {
				require.ErrorIs(t, first, journal.ErrAccess)
				require.NoError(t, projection.CreateTable(t.Context(), w.client, projection.Table{Name: "list_1", PartitionKey: "id"}))
				for first = range built { // a build may have begun before
					if first == nil {
						break
					}
				}
			}
			require.NoError(t, first)
			require.NoError(t, stop())
		})
	}
}
