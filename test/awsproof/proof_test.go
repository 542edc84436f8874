package awsproof

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatch"
	cloudwatchtypes "github.com/aws/aws-sdk-go-v2/service/cloudwatch/types"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go"
	"github.com/aws/smithy-go/middleware"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/dynamotest"
	"github.com/millrace-dev/millrace/internal/permissions"
	"github.com/millrace-dev/millrace/internal/testdb"
	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/subscriber"
)

// short are options of a run that takes seconds.
var short = Options{Budget: MaxBudget, Yes: true, Rate: 50, Duration: 2 * time.Second, Hot: 3 * time.Second, Samples: 20, MetricsWait: 10 * time.Minute}

func only(steps string) Options {
	o := short
	o.Only = steps
	return o
}

// run runs the steps, and returns the report.
func run(t *testing.T, target Target, o Options) (report string, err error) {
	t.Helper()
	var file bytes.Buffer
	err = Run(t.Context(), target, o, strings.NewReader(""), io.Discard, func() (io.WriteCloser, error) { return nopCloser{&file}, nil })
	return file.String(), err
}

type nopCloser struct{ io.Writer }

func (nopCloser) Close() error { return nil }

func tablesIn(t *testing.T, db *dynamotest.DB) []string {
	t.Helper()
	out, err := db.Client().ListTables(t.Context(), &dynamodb.ListTablesInput{})
	require.NoError(t, err)
	return out.TableNames
}

// before returns a client that calls do with each input. do answers the request, unless it returns
// neither an output nor an error.
func before(client *dynamodb.Client, do func(in any) (out any, err error)) *dynamodb.Client {
	return dynamodb.New(client.Options(), func(o *dynamodb.Options) {
		o.APIOptions = append(o.APIOptions, func(stack *middleware.Stack) error {
			return stack.Initialize.Add(middleware.InitializeMiddlewareFunc("Before", func(
				ctx context.Context, in middleware.InitializeInput, next middleware.InitializeHandler,
			) (middleware.InitializeOutput, middleware.Metadata, error) {
				if out, err := do(in.Parameters); out != nil || err != nil {
					return middleware.InitializeOutput{Result: out}, middleware.Metadata{}, err
				}
				return next.HandleInitialize(ctx, in)
			}), middleware.After)
		})
	})
}

func of(suffix string) dynamotest.When {
	return dynamotest.Matching(func(_ string, in any) bool {
		uses, _ := permissions.Uses(in)
		return len(uses) > 0 && strings.HasSuffix(uses[0].Table, suffix)
	})
}

func TestARunReportsTheFaultsOfItsDatabase(t *testing.T) {
	testdb.WithFakeTime(t, func(t *testing.T) {
		db := dynamotest.New(t, dynamotest.WithPartitionLimits(1000, 3000))
		db.Inject(dynamotest.StaleReads(0, 50*time.Millisecond), of("-stale"))
		db.Inject(dynamotest.DelayIndex(0, 150*time.Millisecond), dynamotest.Index(byGroup))
		db.Inject(dynamotest.Conflict(), of("-conflicts"), dynamotest.Chance(0.5))
		db.Inject(dynamotest.Latency(5*time.Millisecond, 10*time.Millisecond))
		target := Target{
			Client: withRestore(t, db.Client()), Partition: "aws", Region: "us-east-1", Account: "123456789012",
			Metrics: &metrics{}, Assume: func(_ context.Context, policy string) (*dynamodb.Client, error) {
				return limited(t, db.Client(), policy), nil
			},
		}
		o := short
		o.Restore = true
		report, err := run(t, target, o)
		require.NoError(t, err, report)
		assert.Empty(t, tablesIn(t, db))

		assert.Regexp(t, `^# Proof on AWS, region us-east-1, account \.\.\.9012, 2000-`, report)
		assert.NotContains(t, report, "**failed**")
		for _, row := range []string{
			`\| two groups receive everything in order \| passed \| passed \|`,
			// Stale reads end after 50 ms, and those of the index after 150 ms and the latency.
			`\| 0s \| 20 \| [1-9]\d* \(\S+ %\) \|`, `\| 50ms \| \d+ \| .* \| \d+ \| [1-9]\d* \(\S+ %\) \|`,
			`\| 100ms \| 20 \| 0 \(0\.00 %\) \| \d+ \| [1-9]\d* `,
			`\| 500ms \| 20 \| 0 \(0\.00 %\) \| 20 \| 0 \(0\.00 %\) \|`,
			`\| PutItem of 0\.1 KB that succeeds \| 20 \| 23 \| 23 \| 0\.00 \|`,
			`false condition, stored are 2\.5 KB \| 20 \| 3 \| 63 \| 3\.00 \|`,
			`\| 5 actions, 3 conditions false \| TransactionCanceledException \| ConditionalCheckFailed, None, ConditionalCheckFailed, None, ConditionalCheckFailed \| 3 \| 0 \|`,
			`items asked for \| TransactionCanceledException \| ConditionalCheckFailed, ConditionalCheckFailed \| 2 \| 2 \|`,
			`\| 2 actions on the same item \| ValidationException \|`,
			`\| the key of the entry changes \| 1 \| 2 \| 2 \|`,
			`\| UpdateItem \| TransactionConflictException \| [1-9]`,
			`\| TransactGetItems \| TransactionCanceledException: TransactionConflict \| [1-9]`,
			`\| this process \| [1-9]`, `\| another process, polled \| not measured`,
			`\| Load \| Execute, Save \| refused \|`, `\| Truncate, Delete \| Truncate, Delete \| succeeded \|`,
			`100 of 100 events were committed`, `Projection: 0 arrived again, 0 attempts .* Other group: 0 arrived again`,
			`(?s)hot partition.*The first was throttled after .*ProvisionedThroughputExceededException: The level.*an index.*The first was throttled`,
			`The journal table has (\d+) items, and the restored one \d+\.`,
			`It differed from the local clock by -(1\.0\d+s|9\d\dms) to `,
			`of a budget of \$20\.00`,
		} {
			assert.Regexp(t, row, report)
		}
	})
}

func TestARunOnAnEmulatorSaysSoFirst(t *testing.T) {
	testdb.WithFakeTime(t, func(t *testing.T) {
		report, err := run(t, Target{Client: dynamotest.New(t).Client(), Endpoint: "http://emulator:8000"}, only("policies,metrics,clock,restore"))
		require.NoError(t, err)
		assert.Regexp(t, "^# Not on AWS: a run on the emulator at http://emulator:8000, ", report)
		for _, reason := range []string{"no role can be assumed", "there is no CloudWatch", "no reply had a Date header", "-restore is not set"} {
			assert.Contains(t, report, "Not checked: "+reason)
		}
	})
}

func TestARunThatMustNotBeginMakesNoRequest(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change func(*Options)
		in     string
		want   error
	}{
		"not confirmed":    {func(o *Options) { o.Yes = false }, "no\n", ErrNotConfirmed},
		"no input":         {func(o *Options) { o.Yes = false }, "", ErrNotConfirmed},
		"over the maximum": {func(o *Options) { o.Budget = 21 }, "yes\n", ErrOptions},
		"no budget":        {func(o *Options) { o.Budget = 0 }, "yes\n", ErrOptions},
		"too expensive":    {func(o *Options) { o.Budget = 0.01; o.Duration = time.Hour }, "yes\n", ErrTooExpensive},
		"unknown step":     {func(o *Options) { o.Only = "load,other" }, "yes\n", ErrOptions},
	} {
		db, o := dynamotest.New(t), short
		c.change(&o)
		recording := db.Record()
		err := Run(t.Context(), Target{Client: db.Client()}, o, strings.NewReader(c.in), io.Discard, func() (io.WriteCloser, error) { panic("created") })
		require.ErrorIs(t, err, c.want, name)
		assert.Empty(t, recording.Calls(), name)
	}
}

func TestARunBeginsAfterYes(t *testing.T) {
	testdb.WithFakeTime(t, func(t *testing.T) {
		var out, file bytes.Buffer
		o := only("indexes")
		o.Yes, o.Budget = false, 1
		err := Run(t.Context(), Target{Client: dynamotest.New(t).Client(), Region: "eu-west-1", Account: "1"}, o, strings.NewReader("yes\n"), &out,
			func() (io.WriteCloser, error) { return nopCloser{&file}, nil })
		require.NoError(t, err)
		for _, text := range []string{"in the account 1, region eu-west-1, on AWS", `make aws-proof PROOF="clean ` + prefixBegin, "of a budget of $1.00", "delete " + prefixBegin} {
			assert.Contains(t, out.String(), text)
		}
		assert.Contains(t, out.String(), file.String()[:100])
	})
}

func TestARunStopsAtItsBudget(t *testing.T) {
	testdb.WithFakeTime(t, func(t *testing.T) {
		db := dynamotest.New(t)
		// More is consumed than expected: each lost reply counts as four units.
		db.Inject(dynamotest.LoseReply(), dynamotest.On("PutItem"), dynamotest.Chance(0.6))
		o := only("stale,indexes")
		o.Samples, o.Budget = 400, 0.002
		client := db.Client(func(o *dynamodb.Options) { o.Retryer = retry.AddWithMaxAttempts(o.Retryer, 20) })
		report, err := run(t, Target{Client: client, Region: "us-east-1"}, o)
		require.ErrorIs(t, err, ErrBudget)
		assert.Contains(t, report, "**Stopped early: the budget is consumed.**")
		assert.Contains(t, report, "at most $0.0020 in ")
		assert.NotContains(t, report, "Units of indexes")
		assert.Empty(t, tablesIn(t, db))
	})
}

func TestAFailureDoesNotEndARunAndTablesAreDeleted(t *testing.T) {
	testdb.WithFakeTime(t, func(t *testing.T) {
		db := dynamotest.New(t)
		db.Inject(dynamotest.InternalError(), dynamotest.On("PutItem"), of("-stale"))
		db.Inject(dynamotest.InternalError(), dynamotest.On("DeleteTable"), dynamotest.Times(9))
		client := before(db.Client(), func(in any) (any, error) {
			if _, ok := in.(*dynamodb.TransactGetItemsInput); ok {
				panic("in a goroutine")
			}
			return nil, nil
		})
		report, err := run(t, Target{Client: client}, only("stale,conflicts,indexes"))
		require.ErrorContains(t, err, "stale: ")
		require.ErrorContains(t, err, "conflicts: panic: in a goroutine")
		assert.Regexp(t, `(?s)\*\*Failed:\*\*.*stale: .*\| it begins, with an entry \| 1 \| 1 \|`, report)
		assert.Empty(t, tablesIn(t, db))
	})
}

func TestTablesAreDeletedAfterAPanicOfTheRun(t *testing.T) {
	testdb.WithFakeTime(t, func(t *testing.T) {
		db := dynamotest.New(t)
		created := false
		assert.PanicsWithValue(t, "the report", func() {
			_ = Run(t.Context(), Target{Client: db.Client()}, only("indexes"), nil, io.Discard, func() (io.WriteCloser, error) {
				return nopCloser{writerFunc(func(b []byte) {
					if bytes.Contains(b, []byte("Units of indexes")) {
						created = len(tablesIn(t, db)) > 0
						panic("the report")
					}
				})}, nil
			})
		})
		assert.True(t, created)
		assert.Empty(t, tablesIn(t, db))
	})
}

type writerFunc func([]byte)

func (f writerFunc) Write(b []byte) (int, error) { f(b); return len(b), nil }

func TestCleanDeletesTablesOfItsPrefixAlone(t *testing.T) {
	testdb.WithFakeTime(t, func(t *testing.T) {
		db := dynamotest.New(t)
		p := &proof{Target: Target{Client: db.Client()}, prefix: newPrefix()}
		other := &proof{Target: p.Target, prefix: newPrefix()}
		for _, of := range []*proof{p, other} {
			_, err := of.table(t.Context(), "a")
			require.NoError(t, err)
		}
		for _, prefix := range []string{"", "orders", prefixBegin, p.prefix + "-", p.prefix[:len(p.prefix)-1]} {
			require.ErrorIs(t, Clean(t.Context(), p.Client, prefix, io.Discard), ErrPrefix, prefix)
		}
		var out bytes.Buffer
		require.NoError(t, Clean(t.Context(), p.Client, p.prefix, &out))
		assert.Equal(t, "delete "+p.prefix+"-a\n1 tables with the prefix "+p.prefix+" were deleted\n", out.String())
		assert.Equal(t, []string{other.prefix + "-a"}, tablesIn(t, db))
	})
}

func TestTheMeterCountsWhatTheDatabaseCounts(t *testing.T) {
	testdb.WithFakeTime(t, func(t *testing.T) {
		db := dynamotest.New(t)
		o := only("load,conformance,indexes")
		chosen, err := o.steps()
		require.NoError(t, err)
		p := &proof{Options: o, prefix: newPrefix(), journals: map[journal.Layout]*journal.Journal{}}
		p.meter = &meter{prefix: p.prefix, region: "us-east-1", budget: 1, spent: func() {}}
		p.Client = p.meter.client(db.Client())
		recording := db.Record()
		for _, s := range chosen {
			before := p.meter.total()
			_, err := s.run(p, t.Context())
			require.NoError(t, err)
			consumed := p.meter.total().minus(before).dollars("us-east-1")
			assert.LessOrEqual(t, consumed, s.expect(o).dollars("us-east-1"), s.name)
		}
		read, write := recording.Units()
		total := p.meter.total()
		assert.InDelta(t, read, total.Read, 10, "only reads that end with their subscription are missing")
		assert.LessOrEqual(t, total.Write, write, "failed requests are not in the replies")
		assert.GreaterOrEqual(t, total.Write+total.Presumed, write)
	})
}

func TestLostAndDoubledEventsAreFound(t *testing.T) {
	testdb.WithFakeTime(t, func(t *testing.T) {
		db := dynamotest.New(t)
		client := before(db.Client(), func(in any) (any, error) {
			if in, ok := in.(*dynamodb.ScanInput); ok && strings.HasSuffix(*in.TableName, "-counts") {
				_, err := db.Client().PutItem(t.Context(), &dynamodb.PutItemInput{TableName: in.TableName, Item: item{"id": text("more"), "events": one}})
				return nil, err
			}
			return nil, nil
		})
		_, err := run(t, Target{Client: client}, only("load"))
		require.ErrorContains(t, err, "the projection counted 101 events, and 100 were committed")

		p := &proof{Target: Target{Client: db.Client()}, prefix: newPrefix(), journals: map[journal.Layout]*journal.Journal{}}
		j, err := p.journal(t.Context(), journal.Packed)
		require.NoError(t, err)
		_, err = write(t.Context(), j, "lost", 1)
		require.NoError(t, err)
		time.Sleep(time.Minute)
		err = together(t.Context(), 2, func(ctx context.Context, part int) error {
			if part == 0 { // a group that does not receive the first event
				_, err := receive(ctx, subscriber.Config{Journal: j, ConsumerGroup: "late", Start: subscriber.Now()}, "lost", 1, 1, func(*message.Message) error { return nil })
				return err
			}
			time.Sleep(time.Second)
			_, err := write(ctx, j, "lost", 1)
			return err
		})
		require.ErrorContains(t, err, "event 2 arrived after 0")
		_, err = receive(t.Context(), subscriber.Config{Journal: j, ConsumerGroup: "more"}, "lost", 3, 1, func(*message.Message) error { return nil })
		require.ErrorContains(t, err, "only 2 of 3 events arrived")
	})
}

func TestAFailedCheckIsInTheReport(t *testing.T) {
	testdb.WithFakeTime(t, func(t *testing.T) {
		db := dynamotest.New(t)
		db.Inject(dynamotest.DelayIndex(time.Hour, time.Hour), dynamotest.Index("journal-tail-index"))
		report, err := run(t, Target{Client: db.Client()}, only("conformance"))
		assert.Contains(t, report, "| events are read as they were written | passed | passed |")
		assert.Regexp(t, `\| heads and the tail show everything \| .*\*\*failed\*\*`, report)
		require.ErrorContains(t, err, "heads and the tail show everything: ")
	})
}

func TestRequestsOnTablesOfOthersAreRefused(t *testing.T) {
	t.Parallel()
	db := dynamotest.New(t)
	m := &meter{prefix: newPrefix(), budget: 1}
	recording := db.Record()
	_, err := m.client(db.Client()).DeleteTable(t.Context(), &dynamodb.DeleteTableInput{TableName: aws.String("orders")})
	require.ErrorContains(t, err, "orders is not a table of this run")
	_, err = m.client(db.Client()).BatchWriteItem(t.Context(), &dynamodb.BatchWriteItemInput{RequestItems: map[string][]types.WriteRequest{
		"orders": {{DeleteRequest: &types.DeleteRequest{Key: key("a", "b")}}},
	}})
	require.ErrorContains(t, err, "orders is not a table of this run")
	assert.Empty(t, recording.Calls())
}

// metrics is a CloudWatch where a false condition costs three units, and metrics come late.
type metrics struct{ asked map[string]int }

func (m *metrics) GetMetricStatistics(_ context.Context, in *cloudwatch.GetMetricStatisticsInput, _ ...func(*cloudwatch.Options)) (*cloudwatch.GetMetricStatisticsOutput, error) {
	table := *in.Dimensions[0].Value
	if m.asked == nil {
		m.asked = map[string]int{}
	}
	sum := map[string]float64{"puts": 23, "conditions": 3 + 20*3, "transactions": 3 + 20*8}[table[strings.LastIndex(table, "-")+1:]]
	points := []cloudwatchtypes.Datapoint{{Sum: aws.Float64(3)}, {Sum: aws.Float64(sum - 3)}}
	if m.asked[table]++; m.asked[table] < 3 {
		points = points[:m.asked[table]-1]
	}
	return &cloudwatch.GetMetricStatisticsOutput{Datapoints: points}, nil
}

// limited returns a client to which a policy applies.
func limited(t *testing.T, client *dynamodb.Client, policy string) *dynamodb.Client {
	var document struct {
		Statement []struct {
			Action   []string
			Resource string
		}
	}
	require.NoError(t, json.Unmarshal([]byte(policy), &document))
	return before(client, func(in any) (any, error) {
		uses, _ := permissions.Uses(in)
		for _, use := range uses {
			arn := "arn:aws:dynamodb:us-east-1:123456789012:table/" + use.Table
			if use.Index != "" {
				arn += "/index/*"
			}
			allowed := false
			for _, s := range document.Statement {
				allowed = allowed || s.Resource == arn && strings.Contains(strings.Join(s.Action, " ")+" ", "dynamodb:"+use.Action+" ")
			}
			if !allowed {
				return nil, &smithy.GenericAPIError{Code: "AccessDeniedException", Message: "not authorized to perform dynamodb:" + use.Action}
			}
		}
		return nil, nil
	})
}

// withRestore returns a client that can restore tables, which dynamotest cannot.
func withRestore(t *testing.T, client *dynamodb.Client) *dynamodb.Client {
	return before(client, func(in any) (any, error) {
		switch in := in.(type) {
		case *dynamodb.UpdateContinuousBackupsInput:
			return &dynamodb.UpdateContinuousBackupsOutput{}, nil
		case *dynamodb.DescribeContinuousBackupsInput:
			latest := time.Now().Add(-5 * time.Minute)
			return &dynamodb.DescribeContinuousBackupsOutput{ContinuousBackupsDescription: &types.ContinuousBackupsDescription{
				PointInTimeRecoveryDescription: &types.PointInTimeRecoveryDescription{LatestRestorableDateTime: &latest},
			}}, nil
		case *dynamodb.RestoreTableToPointInTimeInput:
			restored := &proof{Target: Target{Client: client}}
			restored.prefix = strings.TrimSuffix(*in.TargetTableName, "-restored")
			_, err := restored.table(t.Context(), "restored")
			require.NoError(t, err)
			all, err := client.Scan(t.Context(), &dynamodb.ScanInput{TableName: in.SourceTableName})
			require.NoError(t, err)
			for n := range all.Items {
				_, err := client.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: in.TargetTableName, Item: key("copy", time.Duration(n).String())})
				require.NoError(t, err)
			}
			return &dynamodb.RestoreTableToPointInTimeOutput{}, nil
		}
		return nil, nil
	})
}
