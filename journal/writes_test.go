package journal_test

import (
	"net/http"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/dynamotest"
	"github.com/millrace-dev/millrace/internal/engine"
	"github.com/millrace-dev/millrace/internal/storage"
	"github.com/millrace-dev/millrace/internal/testdb"
	"github.com/millrace-dev/millrace/internal/testjournal"
	"github.com/millrace-dev/millrace/journal"
)

// callers is a table of the caller with the key "id".
type callers struct{ name string }

func (s store) callersTable(t *testing.T) callers {
	t.Helper()
	name := "callers-" + s.Config().Tables.Journal
	_, err := s.client.CreateTable(t.Context(), &dynamodb.CreateTableInput{
		TableName:            &name,
		AttributeDefinitions: []types.AttributeDefinition{{AttributeName: aws.String("id"), AttributeType: types.ScalarAttributeTypeS}},
		KeySchema:            []types.KeySchemaElement{{AttributeName: aws.String("id"), KeyType: types.KeyTypeHash}},
		BillingMode:          types.BillingModePayPerRequest,
	})
	require.NoError(t, err)
	return callers{name}
}

// insert puts an item that must not exist yet.
func (c callers) insert(it item) types.TransactWriteItem {
	return types.TransactWriteItem{Put: &types.Put{
		TableName: &c.name, Item: it, ConditionExpression: aws.String("attribute_not_exists(id)"),
		ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
	}}
}

// count adds one to a counter.
func (c callers) count(id string) types.TransactWriteItem {
	return types.TransactWriteItem{Update: &types.Update{
		TableName: &c.name, Key: item{"id": text(id)}, UpdateExpression: aws.String("ADD times :one"),
		ExpressionAttributeValues: item{":one": number(1)},
	}}
}

func (c callers) remove(id string) types.TransactWriteItem {
	return types.TransactWriteItem{Delete: &types.Delete{TableName: &c.name, Key: item{"id": text(id)}}}
}

// exists checks that an item exists.
func (c callers) exists(id string) types.TransactWriteItem {
	return types.TransactWriteItem{ConditionCheck: &types.ConditionCheck{
		TableName: &c.name, Key: item{"id": text(id)}, ConditionExpression: aws.String("attribute_exists(id)"),
	}}
}

// with returns a commit to a new aggregate, with one event and some writes of the caller.
func with(value string, writes ...types.TransactWriteItem) storage.Commit {
	c := one(value)
	c.Writes = writes
	return c
}

func TestWritesOfTheCallerCommitWithTheEvents(t *testing.T) {
	eachLayout(t, func(t *testing.T, s store) {
		c := s.callersTable(t)
		s.put(t, c.name, item{"id": text("old")})
		s.put(t, c.name, item{"id": text("checked")})

		mustAppend(t, s, with("1", c.insert(item{"id": text("new")}), c.count("counter"), c.remove("old"), c.exists("checked")))
		s.requireVersion(t, user("1"), 1)
		assert.ElementsMatch(t, []item{
			{"id": text("new")}, {"id": text("counter"), "times": number(1)}, {"id": text("checked")},
		}, s.scan(t, c.name))
	})
}

func TestAFalseConditionOfAWriteIsToldWithItsPlaceAndItsItem(t *testing.T) {
	eachLayout(t, func(t *testing.T, s store) {
		c := s.callersTable(t)
		taken := item{"id": text("ann@example.org"), "owner": text("2")}
		s.put(t, c.name, taken)
		for name, x := range map[string]struct {
			commit storage.Commit
			index  int
			item   item
		}{
			"the first":  {with("1", c.insert(taken), c.count("n")), 0, taken},
			"the second": {with("1", c.count("n"), c.insert(taken)), 1, taken},
			"a check that asks for no item, behind a guard": {func() storage.Commit {
				x := with("1", c.count("n"), c.count("m"), c.exists("nothing"))
				x.CommandID = "c"
				return x
			}(), 2, nil},
			"behind a snapshot and a redundant one": {func() storage.Commit {
				x := with("1", c.insert(taken))
				x.Snapshot = &journal.Snapshot{Number: 1, Payload: []byte("state")}
				x.Redundancy = &storage.Redundancy{Listed: []uint64{}, Keep: 1}
				return x
			}(), 0, taken},
		} {
			_, err := s.Append(t.Context(), x.commit)

			var refused *journal.WriteRefusedError
			require.ErrorAs(t, err, new(*journal.WriteRefusedError), name)
			require.ErrorAs(t, err, &refused, name)
			assert.NotEmpty(t, refused.Message, name)
			assert.Equal(t, journal.WriteRefusedError{
				ID: user("1"), Index: x.index, Table: c.name, Code: "ConditionalCheckFailed", Message: refused.Message, Item: x.item,
			}, *refused, name)
			s.requireNothingWritten(t, user("1"))
			assert.Equal(t, []item{taken}, s.scan(t, c.name), "no write of the caller's either")
		}
	})
}

// After a conflict the caller decides again, and the new commit may not contain the write that was
// refused.
func TestAConflictIsToldBeforeAFalseConditionAndADuplicateBeforeBoth(t *testing.T) {
	eachLayout(t, func(t *testing.T, s store) {
		c := s.callersTable(t)
		s.put(t, c.name, item{"id": text("taken")})
		_, err := s.execute(t, user("1"), 0, 1, "pay")
		require.NoError(t, err)
		commit := with("1", c.insert(item{"id": text("taken")}))

		_, err = s.Append(t.Context(), commit)
		require.ErrorIs(t, err, journal.ErrConflict)
		require.NotErrorAs(t, err, new(*journal.WriteRefusedError))

		commit.CommandID = "pay"
		_, err = s.Append(t.Context(), commit)
		require.ErrorAs(t, err, new(*journal.DuplicateCommandError))

		commit.CommandID, commit.Expected = "", 1
		_, err = s.Append(t.Context(), commit)
		require.ErrorAs(t, err, new(*journal.WriteRefusedError))
	})
}

func TestActionsOfACommitAreCountedBeforeItIsSent(t *testing.T) {
	eachLayout(t, func(t *testing.T, s store) {
		c := s.callersTable(t)
		for name, x := range map[string]struct {
			events, writes int
			command        string
			limit          int // number of events, -1 for a commit that fits
		}{
			"98 events and a write":              {98, 1, "", -1},
			"99 events and a write":              {99, 1, "", 98},
			"98 events and a command":            {98, 0, "c", -1},
			"99 events and a command":            {99, 0, "c", 98},
			"an event and 98 writes":             {1, 98, "", -1},
			"an event, 97 writes, a command":     {1, 97, "c", -1},
			"an event, 98 writes, a command":     {1, 98, "c", 0},
			"an event and 100 writes":            {1, 100, "", 0},
			"no event, 98 writes, a command":     {0, 98, "c", -1},
			"no event, 99 writes, and a command": {0, 99, "c", 0},
		} {
			client := &meddler{Client: s.client}
			j := s.through(t, client)
			client.calls = nil
			commit := storage.Commit{Aggregate: user(name), Events: events(1, x.events), CommandID: x.command}
			for i := range x.writes {
				commit.Writes = append(commit.Writes, c.count(name+string(rune('a'+i))))
			}

			_, err := j.Append(t.Context(), commit)

			if x.limit < 0 {
				require.NoError(t, err, name)
				continue
			}
			var tooMany *journal.TooLargeError
			require.ErrorAs(t, err, &tooMany, name)
			assert.Equal(t, journal.TooLargeError{ID: user(name), What: "the commit", Size: x.events, Limit: x.limit, Unit: "events"}, *tooMany, name)
			assert.Empty(t, client.calls, "nothing is sent")
		}
	})
}

func TestWritesCountForTheSizeOfTheCommit(t *testing.T) {
	eachLayout(t, func(t *testing.T, s store) {
		c := s.callersTable(t)
		var puts, sets []types.TransactWriteItem
		for i := range 11 {
			id, large := text(string(rune('a'+i))), binary(string(make([]byte, 390_000)))
			puts = append(puts, c.insert(item{"id": id, "large": large}))
			sets = append(sets, types.TransactWriteItem{Update: &types.Update{
				TableName: &c.name, Key: item{"id": id}, UpdateExpression: aws.String("SET large = :large"), ExpressionAttributeValues: item{":large": large},
			}})
		}
		for _, writes := range [][]types.TransactWriteItem{puts, sets} {
			var large *journal.TooLargeError
			_, err := s.Append(t.Context(), with("1", writes...))
			require.ErrorAs(t, err, &large)
			assert.Equal(t, "the commit", large.What)
			assert.Greater(t, large.Size, 11*390_000)
		}
		mustAppend(t, s, with("1", puts[:10]...))
	})
}

func TestWritesThatWouldChangeTheStoreOrSayNothingAreRefusedBeforeAnythingIsSent(t *testing.T) {
	eachLayout(t, func(t *testing.T, s store) {
		c, tables, a := s.callersTable(t), s.Config().Tables, s.Engine.Config.Attributes
		s.write(t, user("2"), 1, 1)
		head := s.keyOf(user("2"), 0)
		both := c.count("n")
		both.Delete = c.remove("n").Delete
		own := present(tables.Snapshot, a.PartitionKey, s.keyOf(user("1"), 0))
		ownByARN := present(arn(tables.Snapshot), a.PartitionKey, s.keyOf(user("1"), 0))
		if s.isPacked() { // it has no heads
			own = present(tables.Journal, a.PartitionKey, s.keyOf(user("1"), 1))
			ownByARN = present(arn(tables.Journal), a.PartitionKey, s.keyOf(user("1"), 1))
		}
		for name, x := range map[string]struct {
			write types.TransactWriteItem
			text  string
		}{
			"nothing":          {types.TransactWriteItem{}, "exactly one of Put, Update, Delete and ConditionCheck"},
			"two at once":      {both, "exactly one of"},
			"no table":         {types.TransactWriteItem{Put: &types.Put{Item: item{"id": text("1")}}}, "its Put names no table"},
			"put an event":     {callers{tables.Journal}.insert(s.keyOf(user("3"), 1)), "Put on table"},
			"put a head":       {callers{tables.Snapshot}.insert(s.keyOf(user("3"), 0)), "only commits write there"},
			"update a head":    {types.TransactWriteItem{Update: &types.Update{TableName: &tables.Snapshot, Key: head}}, "Update on table"},
			"delete a head":    {types.TransactWriteItem{Delete: &types.Delete{TableName: &tables.Snapshot, Key: head}}, "Delete on table"},
			"delete an event":  {types.TransactWriteItem{Delete: &types.Delete{TableName: &tables.Journal, Key: s.keyOf(user("2"), 1)}}, "Delete on table"},
			"by ARN":           {types.TransactWriteItem{Delete: &types.Delete{TableName: aws.String(arn(tables.Snapshot)), Key: head}}, "Delete on table"},
			"its own head":     {own, "use Expected"},
			"its head, by ARN": {ownByARN, "use Expected"},
		} {
			client := &meddler{Client: s.client}
			j := s.through(t, client)
			client.calls = nil

			_, err := j.Append(t.Context(), with("1", c.count("n"), x.write))

			require.ErrorIs(t, err, journal.ErrInvalidCommit, name)
			assert.ErrorContains(t, err, x.text, name)
			assert.ErrorContains(t, err, "write 1", name)
			assert.Empty(t, client.calls, name)
		}
	})
}

// DynamoDB would refuse the transaction with a message that names no write.
func TestACheckOfARowThatTheCommitWritesIsRefusedAndOneOfAnyOtherIsNot(t *testing.T) {
	onClassic(t, func(t *testing.T, s store) {
		tables, a := s.Config().Tables, s.Engine.Config.Attributes
		partition := storage.ShardKey("user-account", s.Shard(user("1")))
		c := s.callersTable(t)
		_, err := s.execute(t, user("1"), 0, 2, "before")
		require.NoError(t, err)
		_, err = s.execute(t, user("2"), 0, 1, "now")
		require.NoError(t, err)
		// guard returns the key of a command's guard. Its sort key identifies the command for any
		// aggregate.
		guard := func(command string) item {
			for _, it := range s.scan(t, tables.Journal) {
				if id, ok := it["command_id"].(*types.AttributeValueMemberS); ok && id.Value == command {
					sort := it[a.SortKey].(*types.AttributeValueMemberS).Value
					return s.key(partition, "user-account-1-"+sort[len("user-account-1-"):])
				}
			}
			t.Fatal("no guard of " + command)
			return nil
		}
		commit := func(writes ...types.TransactWriteItem) storage.Commit {
			return storage.Commit{
				Aggregate: user("1"), Expected: 2, Events: events(3, 2), CommandID: "now", Snapshot: stateAt(4),
				Redundancy: &storage.Redundancy{Keep: 2, Listed: []uint64{}}, Writes: writes,
			}
		}
		for name, x := range map[string]struct {
			table string
			key   item
		}{
			"the first event":        {tables.Journal, s.keyOf(user("1"), 3)},
			"the last event, by ARN": {arn(tables.Journal), s.keyOf(user("1"), 4)},
			"the command's guard":    {tables.Journal, guard("now")},
			"the head":               {tables.Snapshot, s.keyOf(user("1"), 0)},
			"the redundant snapshot": {tables.Snapshot, s.keyOf(user("1"), 4)},
		} {
			_, err := s.Append(t.Context(), commit(c.count("n"), present(x.table, a.PartitionKey, x.key)))
			require.ErrorIs(t, err, journal.ErrInvalidCommit, name)
			assert.ErrorContains(t, err, "write 1", name)
			assert.ErrorContains(t, err, "an item of the commit's own", name)
			s.requireVersion(t, user("1"), 2)
		}
		allowed := []types.TransactWriteItem{
			present(tables.Journal, a.PartitionKey, s.keyOf(user("1"), 1)),
			present(tables.Journal, a.PartitionKey, s.keyOf(user("1"), 2)),
			present(tables.Journal, a.PartitionKey, guard("before")),
		}
		for table, key := range map[string]item{tables.Journal: s.keyOf(user("1"), 5), tables.Snapshot: s.keyOf(user("1"), 3)} {
			absent := present(table, a.PartitionKey, key)
			absent.ConditionCheck.ConditionExpression = aws.String("attribute_not_exists(#pk)")
			allowed = append(allowed, absent)
		}
		mustAppend(t, s, commit(allowed...))
	})
}

func arn(table string) string { return "arn:aws:dynamodb:us-east-1:000000000000:table/" + table }

func present(table, attribute string, key item) types.TransactWriteItem {
	return types.TransactWriteItem{ConditionCheck: &types.ConditionCheck{
		TableName: &table, Key: key, ConditionExpression: aws.String("attribute_exists(#pk)"),
		ExpressionAttributeNames: map[string]string{"#pk": attribute},
	}}
}

func TestACommitMayCheckAnotherAggregate(t *testing.T) {
	eachLayout(t, func(t *testing.T, s store) {
		check := present(s.Config().Tables.Journal, s.Engine.Config.Attributes.PartitionKey, s.keyOf(user("2"), 1))
		_, err := s.Append(t.Context(), with("1", check))
		require.ErrorAs(t, err, new(*journal.WriteRefusedError))
		s.write(t, user("2"), 1, 1)
		mustAppend(t, s, with("1", check))
	})
}

func TestTwoWritesToOneItemAreRefusedInDynamoDBsWords(t *testing.T) {
	eachLayout(t, func(t *testing.T, s store) {
		c := s.callersTable(t)
		_, err := s.Append(t.Context(), with("1", c.count("n"), c.remove("n")))
		require.ErrorContains(t, err, "nothing written")
		require.ErrorContains(t, err, "multiple operations on one item")
		s.requireNothingWritten(t, user("1"))
	})
}

func TestAWriteToAMissingTableNamesIt(t *testing.T) {
	eachLayout(t, func(t *testing.T, s store) {
		_, err := s.Append(t.Context(), with("1", callers{"no-such-table"}.count("n")))
		require.ErrorIs(t, err, journal.ErrTableMissing)
		require.ErrorContains(t, err, "no-such-table")
		s.requireNothingWritten(t, user("1"))
	})
}

func TestAWriteIsAppliedOnceThoughRepliesAreLost(t *testing.T) {
	eachLayout(t, func(t *testing.T, s store) {
		c := s.callersTable(t)
		remembers := s.through(t, s.onCommits(func(call int, send func() (*http.Response, error)) (*http.Response, error) {
			if call <= 2 {
				return lose(t, send)
			}
			return send()
		}))
		client := &meddler{Client: s.client}
		client.transact = func(call int, in *dynamodb.TransactWriteItemsInput, send func() (*dynamodb.TransactWriteItemsOutput, error)) (*dynamodb.TransactWriteItemsOutput, error) {
			if call == 1 {
				_, err := send()
				assert.NoError(t, err)
				return nil, errConnectionLost
			}
			return s.withoutToken(t, in)
		}
		for name, j := range map[string]*engine.Engine{"token remembered": remembers, "token forgotten": s.through(t, client)} {
			commit := with(name, c.count(name), c.insert(item{"id": text("guard of " + name)}))

			receipt, err := j.Append(t.Context(), commit)

			require.NoError(t, err, name)
			s.requireWrittenOnce(t, name, receipt, 1)
			assert.Equal(t, item{"id": text(name), "times": number(1)}, s.get(t, c.name, item{"id": text(name)}))
		}
	})
}

// The caller's condition may become true again before the first attempt arrives.
func TestACommitThatMayStillArriveIsUnknownThoughItsRepetitionIsRefusedForAWrite(t *testing.T) {
	eachLayout(t, func(t *testing.T, s store) {
		c := s.callersTable(t)
		taken := item{"id": text("ann@example.org")}
		s.put(t, c.name, taken)
		proxy := dynamotest.NewProxy(t, s.client)
		late := proxy.Inject(dynamotest.Late(), dynamotest.On("TransactWriteItems"), dynamotest.Times(1))

		_, err := s.through(t, proxy.Client(testdb.Once)).Append(t.Context(), with("1", c.count("n"), c.insert(taken)))

		var unknown *journal.OutcomeUnknownError
		require.ErrorIs(t, err, journal.ErrOutcomeUnknown)
		require.ErrorAs(t, err, &unknown)
		assert.NotContains(t, err.Error(), "nothing written")
		require.NotErrorAs(t, err, new(*journal.WriteRefusedError), "which says that nothing was written")
		written, err := s.Resolve(t.Context(), unknown)
		require.NoError(t, err)
		assert.False(t, written)

		s.remove(t, c.name, taken)
		require.Equal(t, 1, late.Arrive())
		written, err = s.Resolve(t.Context(), unknown)
		require.NoError(t, err)
		assert.True(t, written)
	})
}

func TestATransactionOnAnItemOfTheCallersIsWaitedFor(t *testing.T) {
	testjournal.EachLayout(t, func(t *testing.T, layout journal.Layout) {
		testdb.WithFakeTime(t, func(t *testing.T) {
			s, db := inMemory(t, journal.Config{Layout: layout})
			c := s.callersTable(t)
			conflict := db.Inject(dynamotest.Conflict(), dynamotest.Table(c.name), dynamotest.Times(3))

			receipt := mustAppend(t, s, with("1", c.count("n")))
			assert.Equal(t, 3, conflict.Fired())
			s.requireWrittenOnce(t, "1", receipt, 1)

			db.Inject(dynamotest.Conflict(), dynamotest.Table(c.name))
			_, err := s.through(t, s.client, impatient).Append(t.Context(), with("2", c.count("n")))
			require.ErrorIs(t, err, journal.ErrContended)
			require.ErrorContains(t, err, c.name, "the table may be any")
			s.requireNothingWritten(t, user("2"))
		})
	})
}

func TestAWriteThatDynamoDBRefusesForAnotherReasonIsToldWithItsPlace(t *testing.T) {
	eachLayout(t, func(t *testing.T, s store) {
		c := s.callersTable(t)
		s.put(t, c.name, item{"id": text("large"), "a": binary(string(make([]byte, 390_000)))})
		grow := types.TransactWriteItem{Update: &types.Update{
			TableName: &c.name, Key: item{"id": text("large")}, UpdateExpression: aws.String("SET b = :b"),
			ExpressionAttributeValues: item{":b": binary(string(make([]byte, 50_000)))},
		}}

		_, err := s.Append(t.Context(), with("1", c.count("n"), grow))

		var refused *journal.WriteRefusedError
		require.ErrorAs(t, err, &refused)
		assert.Equal(t, 1, refused.Index)
		assert.Equal(t, "ValidationError", refused.Code)
		assert.Contains(t, refused.Message, "size")
		s.requireNothingWritten(t, user("1"))
	})
}
