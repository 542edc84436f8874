package dynamotest_test

import (
	"bytes"
	"compress/gzip"
	"compress/zlib"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/dynamotest"
)

// test is a testing.T that the test ends.
type test struct {
	failed   bool
	cleanups []func()
	logs     []string
}

func (t *test) Helper()          {}
func (t *test) Failed() bool     { return t.failed }
func (t *test) Cleanup(f func()) { t.cleanups = append(t.cleanups, f) }
func (t *test) Logf(format string, args ...any) {
	t.logs = append(t.logs, fmt.Sprintf(format, args...))
}

func (t *test) end() {
	for _, f := range t.cleanups {
		f()
	}
}

func TestADatabaseIsClosedWithItsTest(t *testing.T) {
	t.Parallel()
	inner := &test{}
	client := dynamotest.New(inner).Client()
	require.NoError(t, done(t.Context(), client.ListTables, &dynamodb.ListTablesInput{}))
	inner.end()
	require.ErrorIs(t, done(t.Context(), client.ListTables, &dynamodb.ListTablesInput{}), dynamotest.ErrClosed)
	assert.Empty(t, inner.logs)
}

func TestAFailedTestNamesTheSeedOfItsFaults(t *testing.T) {
	t.Parallel()
	inner := &test{failed: true}
	db := dynamotest.New(inner, dynamotest.WithSeed(42))
	db.Inject(dynamotest.Throttle(), dynamotest.Chance(0.5)).Remove()
	db.Inject(dynamotest.Latency(0, 1))
	db.Inject(dynamotest.LoseReply(), dynamotest.On("PutItem"))
	_ = done(t.Context(), db.Client().ListTables, &dynamodb.ListTablesInput{})
	inner.end()
	assert.Equal(t, []string{
		"dynamotest: faults were drawn with dynamotest.WithSeed(42)",
		"dynamotest: these faults were injected but did not happen: LoseReply",
	}, inner.logs)
}

func TestDatabasesDoNotSeeEachOther(t *testing.T) {
	t.Parallel()
	one, other := newTable(t), newTable(t)
	one.put("a", 1, nil)
	assert.Empty(t, other.get("a", 1))
}

func TestWhatACallerDoesToItsItemsDoesNotReachTheDatabase(t *testing.T) {
	t.Parallel()
	tab := newTable(t)
	set := []string{"y", "x"}
	item := object{"p": s("a"), "s": n(1), "list": &types.AttributeValueMemberL{Value: []types.AttributeValue{n(1)}}, "set": &types.AttributeValueMemberSS{Value: set}}
	require.NoError(t, done(t.Context(), tab.client.PutItem, &dynamodb.PutItemInput{TableName: aws.String("tab"), Item: item}))
	set[0] = "z"
	got := tab.get("a", 1)
	got["list"].(*types.AttributeValueMemberL).Value[0] = n(2)
	assert.Equal(t, n(1), tab.get("a", 1)["list"].(*types.AttributeValueMemberL).Value[0])
	assert.ElementsMatch(t, []string{"x", "y"}, tab.get("a", 1)["set"].(*types.AttributeValueMemberSS).Value)
}

func TestARequestForAnotherHostIsNotAnsweredAndNotSent(t *testing.T) {
	t.Parallel()
	client := newTable(t).db.Client(func(o *dynamodb.Options) {
		o.BaseEndpoint, o.Retryer = aws.String("http://127.0.0.1:1"), aws.NopRetryer{}
	})
	err := done(t.Context(), client.ListTables, &dynamodb.ListTablesInput{})
	assert.ErrorContains(t, err, "a client with another endpoint needs another HTTPClient")
}

func TestARequestWithoutSignatureIsRefused(t *testing.T) {
	t.Parallel()
	client := newTable(t).db.Client(func(o *dynamodb.Options) { o.Credentials = aws.AnonymousCredentials{} })
	err := done(t.Context(), client.ListTables, &dynamodb.ListTablesInput{})
	assert.ErrorContains(t, err, "MissingAuthenticationTokenException")
}

func TestTheHandlerAnswersWhatOtherClientsSend(t *testing.T) {
	t.Parallel()
	tab := newTable(t)
	server := httptest.NewServer(tab.db.Handler())
	t.Cleanup(server.Close)
	post := func(target, body string) (int, string) {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, server.URL, strings.NewReader(body))
		require.NoError(t, err)
		request.Header.Set("X-Amz-Target", target)
		request.Header.Set("Authorization", "AWS4-HMAC-SHA256 Credential=any")
		response, err := http.DefaultClient.Do(request)
		require.NoError(t, err)
		defer func() { _ = response.Body.Close() }()
		reply, err := io.ReadAll(response.Body)
		require.NoError(t, err)
		assert.Equal(t, "application/x-amz-json-1.0", response.Header.Get("Content-Type"))
		return response.StatusCode, string(reply)
	}

	status, reply := post("DynamoDB_20120810.ListTables", "{}")
	assert.Equal(t, http.StatusOK, status)
	assert.JSONEq(t, `{"TableNames":["tab"]}`, reply)

	for target, want := range map[string]string{
		"DynamoDB_20120810.Dance":      "UnknownOperationException",
		"":                             "UnknownOperationException",
		"DynamoDB_20120810.ListTables": "SerializationException",
	} {
		status, reply = post(target, `{"Limit":`)
		assert.Equal(t, http.StatusBadRequest, status)
		assert.Contains(t, reply, want)
	}
}

func TestBodiesAreDecompressedAndLimited(t *testing.T) {
	t.Parallel()
	tab := newTable(t)
	server := httptest.NewServer(tab.db.Handler())
	t.Cleanup(server.Close)
	post := func(encoding string, body []byte) (int, string) {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, server.URL, bytes.NewReader(body))
		require.NoError(t, err)
		request.Header.Set("X-Amz-Target", "DynamoDB_20120810.ListTables")
		request.Header.Set("Authorization", "AWS4-HMAC-SHA256 Credential=any")
		if encoding != "" {
			request.Header.Set("Content-Encoding", encoding)
		}
		response, err := server.Client().Do(request)
		require.NoError(t, err)
		defer func() { _ = response.Body.Close() }()
		reply, err := io.ReadAll(response.Body)
		require.NoError(t, err)
		return response.StatusCode, string(reply)
	}
	compressed := func(parts ...string) []byte {
		var buffer bytes.Buffer
		for _, part := range parts {
			w := gzip.NewWriter(&buffer)
			_, _ = io.WriteString(w, part)
			require.NoError(t, w.Close())
		}
		return buffer.Bytes()
	}
	var deflated bytes.Buffer
	w := zlib.NewWriter(&deflated)
	_, _ = io.WriteString(w, "{}")
	require.NoError(t, w.Close())
	const most = 16 << 20
	spaces := func(n int) string { return "{" + strings.Repeat(" ", n-2) + "}" }

	for _, test := range []struct {
		name, encoding string
		body           []byte
		status         int
		reply          string
	}{
		{"gzip", "gzip", compressed("{}"), http.StatusOK, "tab"},
		{"gzip in two parts", "gzip", compressed("{", "}"), http.StatusOK, "tab"},
		{"deflate", "deflate", deflated.Bytes(), http.StatusOK, "tab"},
		{"the largest body", "", []byte(spaces(most)), http.StatusOK, "tab"},
		{"too large", "", []byte(spaces(most + 1)), http.StatusRequestEntityTooLarge, "larger than 16 MB"},
		{"too large when decompressed", "gzip", compressed(spaces(most + 1)), http.StatusInternalServerError, "more than 16 MB"},
		{"no gzip", "gzip", []byte("{}"), http.StatusInternalServerError, "InternalServerError"},
		{"nothing", "gzip", nil, http.StatusInternalServerError, "InternalServerError"},
		{"truncated", "gzip", compressed("{}")[:20], http.StatusInternalServerError, "InternalServerError"},
		{"no deflate", "deflate", []byte("{}"), http.StatusInternalServerError, "InternalServerError"},
		{"another encoding", "br", []byte("{}"), http.StatusInternalServerError, "only gzip and deflate"},
	} {
		status, reply := post(test.encoding, test.body)
		assert.Equal(t, test.status, status, test.name)
		assert.Contains(t, reply, test.reply, test.name)
	}
}

func TestARequestOfStreamsSaysThatThereAreNone(t *testing.T) {
	t.Parallel()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "/", strings.NewReader("{}"))
	require.NoError(t, err)
	request.Header.Set("X-Amz-Target", "DynamoDBStreams_20120810.ListStreams")
	reply := httptest.NewRecorder()
	newTable(t).db.Handler().ServeHTTP(reply, request)
	assert.Equal(t, http.StatusBadRequest, reply.Code)
	assert.Contains(t, reply.Body.String(), "dynamotest has no streams: it does not support DynamoDBStreams_20120810.ListStreams")
}

func TestACutConnectionReachesOtherClientsAsOne(t *testing.T) {
	t.Parallel()
	tab := newTable(t)
	server := httptest.NewServer(tab.db.Handler())
	t.Cleanup(server.Close)
	tab.db.Inject(dynamotest.LoseReply(), dynamotest.On("PutItem"))
	client := dynamodb.New(tab.client.Options(), func(o *dynamodb.Options) {
		o.BaseEndpoint, o.HTTPClient, o.Retryer = &server.URL, server.Client(), aws.NopRetryer{}
	})
	require.ErrorIs(t, done(t.Context(), client.PutItem, putting("a", 1, nil)), io.EOF)
	assert.NotEmpty(t, tab.get("a", 1))
}

func TestAContextThatHasEndedSendsNothing(t *testing.T) {
	t.Parallel()
	tab := newTable(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.ErrorIs(t, done(ctx, tab.client.PutItem, putting("a", 1, nil)), context.Canceled)
	assert.Empty(t, tab.get("a", 1))
}

func TestARepeatedTokenMakesATransactionOnceForTenMinutes(t *testing.T) {
	t.Parallel()
	tab := newTable(t)
	tab.db.Clock().Freeze()
	in := adding(1, "a")
	in.ClientRequestToken = aws.String("token")
	for range 3 {
		require.NoError(t, done(t.Context(), tab.client.TransactWriteItems, in))
	}
	assert.Equal(t, "1", tab.amount("a"))

	other := adding(2, "a")
	other.ClientRequestToken = in.ClientRequestToken
	var mismatch *types.IdempotentParameterMismatchException
	require.ErrorAs(t, done(t.Context(), tab.client.TransactWriteItems, other), &mismatch)

	tab.db.Clock().Advance(10 * time.Minute)
	require.NoError(t, done(t.Context(), tab.client.TransactWriteItems, in))
	assert.Equal(t, "2", tab.amount("a"))
}

func TestATokenLivesFromTheEndOfItsTransaction(t *testing.T) {
	t.Parallel()
	tab := newTable(t)
	tab.db.Clock().Freeze()
	tab.db.Inject(dynamotest.Hold(func(context.Context) { tab.db.Clock().Advance(time.Hour) }), dynamotest.Times(1))
	in := adding(1, "a")
	in.ClientRequestToken = aws.String("token")
	for range 2 {
		require.NoError(t, done(t.Context(), tab.client.TransactWriteItems, in))
	}
	assert.Equal(t, "1", tab.amount("a"))
}

func TestATokenOfATransactionThatFailedMayBeUsedAgain(t *testing.T) {
	t.Parallel()
	tab := newTable(t)
	in := adding(1, "a")
	in.ClientRequestToken = aws.String("token")
	in.TransactItems[0].Update.ConditionExpression = aws.String("attribute_exists(p)")
	require.Error(t, done(t.Context(), tab.client.TransactWriteItems, in))
	tab.put("a", 1, nil)
	require.NoError(t, done(t.Context(), tab.client.TransactWriteItems, in))
	assert.Equal(t, "1", tab.amount("a"))
}

func TestARepetitionMeetsItsTransactionUnderWay(t *testing.T) {
	t.Parallel()
	tab := newTable(t)
	in := adding(1, "a")
	in.ClientRequestToken = aws.String("token")
	var under error
	tab.db.Inject(dynamotest.Hold(func(ctx context.Context) {
		under = done(ctx, tab.once().TransactWriteItems, in)
	}))
	require.NoError(t, done(t.Context(), tab.client.TransactWriteItems, in))
	var inProgress *types.TransactionInProgressException
	require.ErrorAs(t, under, &inProgress)
}

func TestItemsExpireWhenTheClockPassesTheirTime(t *testing.T) {
	t.Parallel()
	const delay = time.Hour
	tab := newTable(t, dynamotest.WithExpiryDelay(delay))
	tab.db.Clock().Freeze()
	_, err := tab.client.UpdateTimeToLive(t.Context(), &dynamodb.UpdateTimeToLiveInput{
		TableName:               aws.String("tab"),
		TimeToLiveSpecification: &types.TimeToLiveSpecification{AttributeName: aws.String("ttl"), Enabled: aws.Bool(true)},
	})
	require.NoError(t, err)
	now := tab.db.Clock().Now().Unix()
	tab.put("soon", 1, object{"ttl": n(now + 10), "g": s("x")})
	tab.put("late", 1, object{"ttl": n(now + 1000), "g": s("x")})
	tab.put("text", 1, object{"ttl": s(fmt.Sprint(now + 10)), "g": s("x")})
	// DynamoDB ignores a time to live of more than five years ago, because it may be a mistake.
	tab.put("long ago", 1, object{"ttl": n(now - 6*365*24*3600), "g": s("x")})
	left := func() int {
		out, err := tab.client.Query(t.Context(), querying("global", "x"))
		require.NoError(t, err)
		return int(out.Count)
	}

	tab.db.Clock().Advance(10*time.Second + delay - time.Second)
	assert.Equal(t, 4, left(), "an expired item stays for a while")
	tab.db.Clock().Advance(2 * time.Second)
	assert.Equal(t, 3, left())
	assert.Empty(t, tab.get("soon", 1))
	_, err = tab.client.UpdateItem(t.Context(), setting("late", 1, "SET #t = :later", nil))
	require.Error(t, err)
	in := setting("late", 1, "SET #t = :later", object{":later": n(now + 100_000)})
	in.ExpressionAttributeNames = map[string]string{"#t": "ttl"}
	require.NoError(t, done(t.Context(), tab.client.UpdateItem, in))
	tab.db.Clock().Advance(5000 * time.Second)
	assert.Equal(t, 3, left(), "a later time keeps it")
}

func TestAClockIsMovedFrozenAndSkewed(t *testing.T) {
	t.Parallel()
	clock := dynamotest.New(t).Clock()
	at := time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC)
	clock.Set(at)
	assert.WithinDuration(t, at, clock.Now(), time.Minute)
	clock.Freeze()
	clock.Set(at)
	clock.Advance(time.Hour)
	assert.Equal(t, at.Add(time.Hour), clock.Now())
	assert.Equal(t, at.Add(time.Hour-time.Second), clock.Skewed(-time.Second)())
	clock.Resume()
	assert.False(t, clock.Now().Before(at.Add(time.Hour)))
}

func TestObserversSeeEachCallUntilTheyStop(t *testing.T) {
	t.Parallel()
	tab := newTable(t)
	var seen []dynamotest.Call
	stop := tab.db.Observe(func(c dynamotest.Call) { seen = append(seen, c) })
	tab.put("a", 1, object{"g": s("x")})
	require.NoError(t, done(t.Context(), tab.client.Query, querying("global", "x")))
	in := putting("a", 1, nil)
	in.ConditionExpression = aws.String("attribute_not_exists(p)")
	require.Error(t, done(t.Context(), tab.client.PutItem, in))
	stop()
	tab.put("b", 1, nil)

	require.Len(t, seen, 3)
	assert.Equal(t, "PutItem", seen[0].Operation)
	assert.Equal(t, []string{"tab"}, seen[0].Tables)
	assert.Equal(t, 1, seen[0].Items)
	assert.NotZero(t, seen[0].RequestBytes)
	assert.Equal(t, "global", seen[1].Index)
	assert.Equal(t, 1, seen[1].Items)
	assert.Equal(t, 1, seen[1].Scanned)
	var failed *types.ConditionalCheckFailedException
	assert.ErrorAs(t, seen[2].Err, &failed)
}

func TestOneDatabaseServesManyGoroutines(t *testing.T) {
	t.Parallel()
	tab := newTable(t)
	calm := tab.db.Storm(0.05)
	var wait sync.WaitGroup
	for g := range 8 {
		wait.Add(1)
		go func() {
			defer wait.Done()
			for i := range 50 {
				_ = done(t.Context(), tab.client.TransactWriteItems, adding(1, "a", fmt.Sprint(g)))
				_ = done(t.Context(), tab.client.Scan, &dynamodb.ScanInput{TableName: aws.String("tab")})
				_ = done(t.Context(), tab.client.Query, querying("global", "x"))
				if i%10 == 0 {
					tab.db.Clock().Advance(time.Second)
					_ = done(t.Context(), tab.client.DescribeTable, &dynamodb.DescribeTableInput{TableName: aws.String("tab")})
				}
			}
		}()
	}
	wait.Wait()
	calm()
	sum := 0
	for g := range 8 {
		var amount int
		_, _ = fmt.Sscan(tab.amount(fmt.Sprint(g)), &amount)
		sum += amount
	}
	assert.Equal(t, fmt.Sprint(sum), tab.amount("a"), "each transaction counted both or none")
}
