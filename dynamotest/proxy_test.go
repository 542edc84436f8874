package dynamotest_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/dynamotest"
)

// faulty is a database, or a proxy in front of one.
type faulty interface {
	Client(options ...func(*dynamodb.Options)) *dynamodb.Client
	Inject(fault dynamotest.Fault, when ...dynamotest.When) *dynamotest.Injection
	Record() *dynamotest.Recording
}

// oneAttempt is an option of a client.
func oneAttempt(o *dynamodb.Options) { o.Retryer = aws.NopRetryer{} }

// script makes calls of all kinds, and returns their outcomes and the stored items.
func script(t *testing.T, tab *table, way faulty, fault dynamotest.Fault, when ...dynamotest.When) (outcomes []string, calls []dynamotest.Call) {
	t.Helper()
	for i := range 10 {
		tab.put("a", i, object{"g": s("x"), "l": s("y")})
	}
	injection := way.Inject(fault, when...)
	recording := way.Record()
	client := way.Client(oneAttempt)
	note := func(what string, out any, err error) {
		var api smithy.APIError
		var cancelled *types.TransactionCanceledException
		switch {
		case errors.As(err, &cancelled):
			var codes []string
			for _, reason := range cancelled.CancellationReasons {
				codes = append(codes, aws.ToString(reason.Code))
			}
			outcomes = append(outcomes, fmt.Sprint(what, " cancelled ", codes))
		case errors.As(err, &api):
			outcomes = append(outcomes, fmt.Sprint(what, " refused ", api.ErrorCode()))
		case err != nil:
			outcomes = append(outcomes, fmt.Sprint(what, " broken ", errors.Is(err, io.ErrUnexpectedEOF)))
		default:
			outcomes = append(outcomes, fmt.Sprint(what, " ", out))
		}
	}
	for i := range 6 {
		_, err := client.PutItem(t.Context(), putting("b", i, object{"g": s("x")}))
		note("put", "", err)
		got, err := client.GetItem(t.Context(), getting("b", i))
		note("get", got != nil && got.Item != nil, err)
		_, err = client.UpdateItem(t.Context(), setting("b", 1, "ADD x :x", object{":x": n(1)}))
		note("update", "", err)
		_, err = client.DeleteItem(t.Context(), deleting("a", i))
		note("delete", "", err)
		for _, index := range []string{"", "global", "local"} {
			page, err := client.Query(t.Context(), querying(index, map[string]string{"": "a", "global": "x", "local": "a"}[index]))
			if err == nil {
				note("query", fmt.Sprint(page.Count, len(page.Items), page.LastEvaluatedKey != nil), nil)
				continue
			}
			note("query", nil, err)
		}
		written, err := client.BatchWriteItem(t.Context(), batch("c", "d", fmt.Sprint("e", i)))
		if err == nil {
			note("batch", fmt.Sprint(len(written.UnprocessedItems["tab"])), nil)
		} else {
			note("batch", nil, err)
		}
		read, err := client.BatchGetItem(t.Context(), batchOfKeys("c", "d", "b"))
		if err == nil {
			note("reads", fmt.Sprint(len(read.Responses["tab"]), len(read.UnprocessedKeys["tab"].Keys)), nil)
		} else {
			note("reads", nil, err)
		}
		_, err = client.TransactWriteItems(t.Context(), adding(1, "t", fmt.Sprint("u", i)))
		note("transact", "", err)
	}
	outcomes = append(outcomes, fmt.Sprint("fired ", injection.Fired()), fmt.Sprint("late ", injection.Arrive()))
	injection.Remove()
	recording.Stop()
	all, err := tab.client.Scan(t.Context(), &dynamodb.ScanInput{TableName: aws.String("tab")})
	require.NoError(t, err)
	for _, item := range all.Items {
		outcomes = append(outcomes, fmt.Sprint(keyText(item["p"]), keyText(item["s"]), keyText(item["amount"]), keyText(item["x"])))
	}
	return outcomes, recording.Calls()
}

func keyText(v types.AttributeValue) string {
	switch v := v.(type) {
	case *types.AttributeValueMemberS:
		return v.Value
	case *types.AttributeValueMemberN:
		return " " + v.Value
	}
	return ""
}

func TestFaultsHappenThroughAProxyAsInADatabase(t *testing.T) {
	t.Parallel()
	hidden := func(item object) bool { return keyText(item["s"]) == " 4" }
	for name, test := range map[string]struct {
		fault func() dynamotest.Fault
		when  []dynamotest.When
	}{
		"nothing":                               {func() dynamotest.Fault { return dynamotest.Latency(0, 0) }, nil},
		"throttled":                             {dynamotest.Throttle, nil},
		"an item throttled":                     {dynamotest.Throttle, []dynamotest.When{dynamotest.Key(object{"p": s("c")})}},
		"an index throttled, which pushes back": {dynamotest.Throttle, []dynamotest.When{dynamotest.Index("global")}},
		"a put throttled by key":                {dynamotest.Throttle, []dynamotest.When{dynamotest.On("PutItem"), dynamotest.Key(keyOf("b", 2))}},
		"errors inside":                         {dynamotest.InternalError, []dynamotest.When{dynamotest.Times(7)}},
		"refused": {func() dynamotest.Fault {
			return dynamotest.Refuse(&types.RequestLimitExceeded{})
		}, []dynamotest.When{dynamotest.After(5)}},
		"conflicts":          {dynamotest.Conflict, nil},
		"cut":                {dynamotest.CutConnection, nil},
		"replies lost":       {dynamotest.LoseReply, nil},
		"late":               {dynamotest.Late, []dynamotest.When{dynamotest.On("UpdateItem", "TransactWriteItems", "BatchWriteItem")}},
		"one unprocessed":    {func() dynamotest.Fault { return dynamotest.Unprocessed(1) }, nil},
		"all unprocessed":    {func() dynamotest.Fault { return dynamotest.Unprocessed(9) }, nil},
		"small pages":        {func() dynamotest.Fault { return dynamotest.SmallPages(2) }, nil},
		"hidden":             {func() dynamotest.Fault { return dynamotest.Hide(hidden) }, nil},
		"hidden in an index": {func() dynamotest.Fault { return dynamotest.Hide(hidden) }, []dynamotest.When{dynamotest.Index("local")}},
	} {
		for _, chance := range []float64{1, 0.5} {
			t.Run(fmt.Sprint(name, " ", chance), func(t *testing.T) {
				t.Parallel()
				when := test.when
				if chance < 1 {
					when = append(when[:len(when):len(when)], dynamotest.Chance(chance))
				}
				direct, behind := newTable(t, dynamotest.WithSeed(3)), newTable(t)
				want, wantCalls := script(t, direct, direct.db, test.fault(), when...)

				got, calls := script(t, behind, dynamotest.NewProxy(t, behind.client, dynamotest.WithSeed(3)), test.fault(), when...)

				assert.Equal(t, want, got)
				require.Len(t, calls, len(wantCalls))
				for i, want := range wantCalls {
					got := calls[i]
					assert.Equal(t, want.Faults, got.Faults, "%d: %s", i, want.Operation)
					assert.Equal(t, want.Tables, got.Tables)
					assert.Equal(t, want.Index, got.Index)
					assert.Equal(t, want.Late, got.Late)
					assert.Equal(t, want.Err == nil, got.Err == nil, "%v, %v", want.Err, got.Err)
					if want.Err == nil {
						assert.Equal(t, want.Scanned, got.Scanned)
					}
				}
			})
		}
	}
}

func TestAProxyRefusesWhatHappensInsideTheDatabase(t *testing.T) {
	t.Parallel()
	proxy := dynamotest.NewProxy(t, newTable(t).client)
	for name, fault := range map[string]dynamotest.Fault{
		"DelayIndex": dynamotest.DelayIndex(0, time.Second),
		"StaleReads": dynamotest.StaleReads(0, time.Second),
		"Hold":       dynamotest.Hold(dynamotest.For(0)),
		"Tear":       dynamotest.Tear(dynamotest.For(0)),
	} {
		assert.PanicsWithValue(t,
			"dynamotest: "+name+" happens inside the database, and not in a Proxy: inject it with DB.Inject",
			func() { proxy.Inject(fault) })
	}
	assert.Panics(t, func() { dynamotest.OpenProxy(newTable(t).client, dynamotest.WithExpiryDelay(time.Hour)) })
}

func TestAProxyDisturbsOnlyItsOwnClients(t *testing.T) {
	t.Parallel()
	tab := newTable(t)
	proxy := dynamotest.NewProxy(t, tab.client)
	cut := proxy.Inject(dynamotest.CutConnection())

	require.ErrorIs(t, done(t.Context(), proxy.Client(oneAttempt).PutItem, putting("a", 1, nil)), io.ErrUnexpectedEOF)
	tab.put("a", 1, nil)
	cut.Remove()

	require.NoError(t, done(t.Context(), proxy.Client().PutItem, putting("a", 1, nil)))
	proxy.Close()
	require.ErrorIs(t, done(t.Context(), proxy.Client().PutItem, putting("a", 1, nil)), dynamotest.ErrClosed)
}

func TestAProxyRecordsWhatTheReplyReports(t *testing.T) {
	t.Parallel()
	tab := newTable(t)
	proxy := dynamotest.NewProxy(t, tab.client)
	recording := proxy.Record()
	put := putting("a", 1, object{"g": s("x")})
	put.ReturnConsumedCapacity = types.ReturnConsumedCapacityIndexes

	require.NoError(t, done(t.Context(), proxy.Client().PutItem, put))
	put.ConditionExpression = aws.String("attribute_not_exists(p)")
	require.Error(t, done(t.Context(), proxy.Client().PutItem, put))
	require.NoError(t, done(t.Context(), proxy.Client().GetItem, getting("a", 1)))

	assert.Equal(t, map[string]int{"PutItem": 2, "GetItem": 1}, recording.Counts())
	calls := recording.Calls()
	assert.Equal(t, []dynamotest.Capacity{{Table: "tab", WriteUnits: 1}, {Table: "tab", Index: "global", WriteUnits: 1}}, calls[0].Capacity)
	assert.InDelta(t, 2, calls[0].WriteUnits, 0)
	assert.ErrorContains(t, calls[1].Err, "ConditionalCheckFailedException")
	assert.Equal(t, 1, calls[2].Items)
}

func TestAProxyKnowsATableThatIsCreatedAgain(t *testing.T) {
	t.Parallel()
	tab := newTable(t)
	proxy := dynamotest.NewProxy(t, tab.client)
	client := proxy.Client(oneAttempt)
	proxy.Inject(dynamotest.CutConnection(), dynamotest.Key(object{"other": s("a")}))
	require.NoError(t, done(t.Context(), client.PutItem, putting("a", 1, object{"other": s("a")})))

	require.NoError(t, done(t.Context(), client.DeleteTable, &dynamodb.DeleteTableInput{TableName: aws.String("tab")}))
	require.NoError(t, done(t.Context(), client.CreateTable, &dynamodb.CreateTableInput{
		TableName: aws.String("tab"), BillingMode: types.BillingModePayPerRequest,
		AttributeDefinitions: []types.AttributeDefinition{{AttributeName: aws.String("other"), AttributeType: types.ScalarAttributeTypeS}},
		KeySchema:            []types.KeySchemaElement{{AttributeName: aws.String("other"), KeyType: types.KeyTypeHash}},
	}))

	require.ErrorIs(t, done(t.Context(), client.PutItem, putting("a", 1, object{"other": s("a")})), io.ErrUnexpectedEOF)
}

// undescribed is a signer of a client that may not describe tables.
type undescribed struct{ dynamodb.HTTPSignerV4 }

func (s undescribed) SignHTTP(
	ctx context.Context, keys aws.Credentials, request *http.Request, hash, service, region string, at time.Time,
	options ...func(*v4.SignerOptions),
) error {
	if strings.HasSuffix(request.Header.Get("X-Amz-Target"), ".DescribeTable") {
		return errDescribe
	}
	return s.HTTPSignerV4.SignHTTP(ctx, keys, request, hash, service, region, at, options...)
}

var errDescribe = errors.New("describing is denied")

func (t *table) undescribed() *dynamodb.Client {
	return t.db.Client(func(o *dynamodb.Options) { o.HTTPSignerV4 = undescribed{o.HTTPSignerV4} })
}

func TestAProxyFailsACallWhoseFaultItCannotDecide(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		call func(*dynamodb.Client) error
		when dynamotest.When
	}{
		"the key of a put": {func(c *dynamodb.Client) error {
			return done(t.Context(), c.PutItem, putting("a", 1, nil))
		}, dynamotest.Key(keyOf("a", 1))},
		"the chance of a put": {func(c *dynamodb.Client) error {
			return done(t.Context(), c.PutItem, putting("a", 1, nil))
		}, dynamotest.Chance(0.01)},
		"the key of a put in a batch": {func(c *dynamodb.Client) error {
			return done(t.Context(), c.BatchWriteItem, batch("a", "b"))
		}, dynamotest.Key(keyOf("a", 1))},
		"the index of a deletion": {func(c *dynamodb.Client) error {
			return done(t.Context(), c.DeleteItem, deleting("a", 1))
		}, dynamotest.Index("global")},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tab := newTable(t)
			proxy := dynamotest.NewProxy(t, tab.undescribed())
			recording := proxy.Record()
			throttle := proxy.Inject(dynamotest.Throttle(), test.when)

			err := test.call(proxy.Client(oneAttempt))

			require.ErrorIs(t, err, errDescribe)
			require.ErrorContains(t, err, "dynamotest: cannot decide whether Throttle happens to a ")
			require.ErrorContains(t, err, `describe table "tab"`)
			require.Len(t, recording.Calls(), 1)
			require.ErrorIs(t, recording.Calls()[0].Err, errDescribe)
			assert.Empty(t, tab.get("a", 1), "nothing is written")
			throttle.Remove()
			assert.NoError(t, test.call(proxy.Client(oneAttempt)))
		})
	}
}

func TestAProxyAsksForNoKeysThatNoFaultNeeds(t *testing.T) {
	t.Parallel()
	tab := newTable(t)
	proxy := dynamotest.NewProxy(t, tab.undescribed())
	client := proxy.Client(oneAttempt)
	cut := proxy.Inject(dynamotest.CutConnection(), dynamotest.On("PutItem"), dynamotest.Times(1))
	proxy.Inject(dynamotest.Throttle(), dynamotest.Key(keyOf("a", 1)), dynamotest.Table("other"))
	proxy.Inject(dynamotest.Throttle(), dynamotest.Key(keyOf("b", 1)), dynamotest.On("DeleteItem"))

	require.ErrorIs(t, done(t.Context(), client.PutItem, putting("a", 1, nil)), io.ErrUnexpectedEOF)
	require.NoError(t, done(t.Context(), client.PutItem, putting("a", 1, nil)))
	require.NoError(t, done(t.Context(), client.DeleteItem, deleting("a", 1)))
	require.Error(t, done(t.Context(), client.DeleteItem, deleting("b", 1)))

	assert.Equal(t, 1, cut.Fired())
}

func TestATableThatDoesNotExistIsNoFailureOfAProxy(t *testing.T) {
	t.Parallel()
	proxy := dynamotest.NewProxy(t, dynamotest.New(t).Client())
	proxy.Inject(dynamotest.Throttle(), dynamotest.Key(keyOf("a", 1)))
	proxy.Inject(dynamotest.Throttle(), dynamotest.Index("global"))

	var missing *types.ResourceNotFoundException
	require.ErrorAs(t, done(t.Context(), proxy.Client(oneAttempt).PutItem, putting("a", 1, nil)), &missing)
	require.ErrorAs(t, done(t.Context(), proxy.Client(oneAttempt).DeleteItem, deleting("b", 1)), &missing)
}

func TestAProxyDescribesATableInTheContextOfTheRequest(t *testing.T) {
	t.Parallel()
	tab := newTable(t)
	behind := dynamotest.NewProxy(t, tab.client)
	ctx, cancel := context.WithCancel(t.Context())
	behind.Inject(dynamotest.Pause(func(describing context.Context) {
		cancel()
		<-describing.Done()
	}), dynamotest.On("DescribeTable"))
	proxy := dynamotest.NewProxy(t, behind.Client())
	proxy.Inject(dynamotest.Throttle(), dynamotest.Key(keyOf("a", 1)))

	require.ErrorIs(t, done(ctx, proxy.Client().PutItem, putting("a", 1, nil)), context.Canceled)

	assert.Empty(t, tab.get("a", 1))
}

func TestAProxyRefusesARequestThatItCannotRead(t *testing.T) {
	t.Parallel()
	tab := newTable(t)
	proxy := dynamotest.NewProxy(t, tab.client)
	cut := proxy.Inject(dynamotest.CutConnection())
	recording := proxy.Record()
	client := proxy.Client(oneAttempt, func(o *dynamodb.Options) { o.HTTPClient = later{o.HTTPClient} })
	err := done(t.Context(), client.PutItem, putting("a", 1, nil))

	require.ErrorContains(t, err, "dynamotest: the proxy cannot read a PutItem")
	require.ErrorContains(t, err, "LaterParameter")
	assert.Zero(t, cut.Fired())
	assert.Empty(t, tab.get("a", 1))
	require.Len(t, recording.Calls(), 1)
	assert.ErrorContains(t, recording.Calls()[0].Err, "LaterParameter")
}

// later sends a parameter that a later version of the SDK may have.
type later struct{ dynamodb.HTTPClient }

func (l later) Do(request *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(request.Body)
	if err != nil {
		return nil, err
	}
	body = append([]byte(`{"LaterParameter":1,`), body[1:]...)
	request.Body, request.ContentLength = io.NopCloser(strings.NewReader(string(body))), int64(len(body))
	return l.HTTPClient.Do(request)
}

func TestARequestThatAFaultChangesIsSignedAgain(t *testing.T) {
	t.Parallel()
	db := dynamotest.New(t)
	keys := credentials.NewStaticCredentialsProvider("KEY", "secret", "token")
	signed := 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		body, err := io.ReadAll(request.Body)
		assert.NoError(t, err)
		date, err := time.Parse("20060102T150405Z", request.Header.Get("X-Amz-Date"))
		assert.NoError(t, err)
		same := request.Clone(request.Context())
		same.URL.Scheme, same.URL.Host = "http", request.Host
		same.Header.Del("Authorization")
		for name := range same.Header { // only signed headers
			if !strings.Contains(request.Header.Get("Authorization"), strings.ToLower(name)) {
				same.Header.Del(name)
			}
		}
		hash := sha256.Sum256(body)
		key, err := keys.Retrieve(context.Background())
		assert.NoError(t, err)
		assert.NoError(t, v4.NewSigner().SignHTTP(request.Context(), key, same, hex.EncodeToString(hash[:]), "dynamodb", "eu-west-1", date))
		assert.Equal(t, same.Header.Get("Authorization"), request.Header.Get("Authorization"), "the body: %s", body)
		signed++
		request.Body = io.NopCloser(strings.NewReader(string(body)))
		db.Handler().ServeHTTP(w, request)
	}))
	t.Cleanup(server.Close)
	client := dynamodb.New(dynamodb.Options{Region: "eu-west-1", BaseEndpoint: &server.URL, Credentials: keys})
	(&table{T: t, client: client}).create("tab")
	proxy := dynamotest.NewProxy(t, client)
	proxy.Inject(dynamotest.SmallPages(1))
	proxy.Inject(dynamotest.Unprocessed(1))

	require.NoError(t, done(t.Context(), proxy.Client().BatchWriteItem, batch("a", "b")))
	require.NoError(t, done(t.Context(), proxy.Client().Query, querying("", "a")))
	assert.Equal(t, 4, signed, "the table is created, the proxy asks for its keys, and the two calls")
}

func TestNobodyGetsTheReplyToWhatIsUnderWayWhenAProxyCloses(t *testing.T) {
	t.Parallel()
	tab := newTable(t)
	proxy := dynamotest.NewProxy(t, tab.client)
	proxy.Inject(dynamotest.PauseReply(func(context.Context) { proxy.Close() }), dynamotest.On("PutItem"))

	require.ErrorIs(t, done(t.Context(), proxy.Client(oneAttempt).PutItem, putting("a", 1, nil)), dynamotest.ErrClosed)

	assert.NotEmpty(t, tab.get("a", 1))
}
