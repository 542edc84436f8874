package dynamotest_test

import (
	"context"
	"fmt"
	"net/http/httptest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/millrace-dev/millrace/dynamotest"
)

// Withdraw is the function under test: it withdraws an amount from an account, never more than it
// has.
func Withdraw(ctx context.Context, client *dynamodb.Client, account string, amount int) error {
	_, err := client.UpdateItem(ctx, &dynamodb.UpdateItemInput{
		TableName:           aws.String("accounts"),
		Key:                 map[string]types.AttributeValue{"id": &types.AttributeValueMemberS{Value: account}},
		UpdateExpression:    aws.String("SET balance = balance - :amount"),
		ConditionExpression: aws.String("balance >= :amount"),
		ExpressionAttributeValues: map[string]types.AttributeValue{
			":amount": &types.AttributeValueMemberN{Value: fmt.Sprint(amount)},
		},
	})
	return err
}

// This function withdraws twice if a reply is lost: its update is not idempotent, and the SDK sends
// it again.
func Example() {
	db := dynamotest.Open() // in a test: dynamotest.New(t)
	defer db.Close()
	client, ctx := db.Client(), context.Background()
	createAccounts(ctx, client, "alice", 100)

	db.Inject(dynamotest.LoseReply(), dynamotest.On("UpdateItem"), dynamotest.Times(1))
	err := Withdraw(ctx, client, "alice", 30)

	fmt.Println("error:", err)
	fmt.Println("balance:", balance(ctx, client, "alice"))
	// Output:
	// error: <nil>
	// balance: 40
}

// Throttle all updates of a table.
func ExampleDB_Inject() {
	db := dynamotest.Open(dynamotest.WithSeed(7))
	defer db.Close()
	client, ctx := db.Client(), context.Background()
	createAccounts(ctx, client, "alice", 100)

	// The SDK makes three attempts, and each of them is throttled.
	throttle := db.Inject(dynamotest.Throttle(), dynamotest.Table("accounts"), dynamotest.On("UpdateItem"))
	err := Withdraw(ctx, client, "alice", 30)
	fmt.Println("refused:", err != nil, "attempts:", throttle.Fired())

	throttle.Remove()
	fmt.Println(Withdraw(ctx, client, "alice", 30))
	// Output:
	// refused: true attempts: 3
	// <nil>
}

// Measure the capacity units of a function.
func ExampleDB_Record() {
	db := dynamotest.Open()
	defer db.Close()
	client, ctx := db.Client(), context.Background()
	createAccounts(ctx, client, "alice", 100)

	calls := db.Record()
	_ = Withdraw(ctx, client, "alice", 30)

	for _, call := range calls.Calls() {
		fmt.Println(call.Operation, call.Tables, call.WriteUnits, "write unit")
	}
	// Output:
	// UpdateItem [accounts] 1 write unit
}

// A caller gives up and reports that nothing was withdrawn. Then the request arrives.
func ExampleLate() {
	db := dynamotest.Open()
	defer db.Close()
	client, ctx := db.Client(), context.Background()
	createAccounts(ctx, client, "alice", 100)

	late := db.Inject(dynamotest.Late(), dynamotest.On("UpdateItem"))
	noRetries := db.Client(func(o *dynamodb.Options) { o.Retryer = aws.NopRetryer{} })
	err := Withdraw(ctx, noRetries, "alice", 30)
	fmt.Println("failed:", err != nil, "balance:", balance(ctx, client, "alice"))

	late.Arrive()
	fmt.Println("balance:", balance(ctx, client, "alice"))
	// Output:
	// failed: true balance: 100
	// balance: 70
}

// Two programs share a database, and the connection of one of them breaks. The database may also be
// DynamoDB Local or AWS.
func ExampleProxy() {
	db := dynamotest.Open()
	defer db.Close()
	client, ctx := db.Client(), context.Background()
	createAccounts(ctx, client, "alice", 100)
	proxy := dynamotest.OpenProxy(client) // in a test: dynamotest.NewProxy(t, client)
	defer proxy.Close()

	proxy.Inject(dynamotest.CutConnection())
	fmt.Println("through the proxy:", Withdraw(ctx, proxy.Client(), "alice", 30) == nil)
	fmt.Println("beside it:", Withdraw(ctx, client, "alice", 30) == nil)
	// Output:
	// through the proxy: false
	// beside it: true
}

// A change reaches an index a second later.
func ExampleDelayIndex() {
	db := dynamotest.Open()
	defer db.Close()
	db.Clock().Freeze()
	client, ctx := db.Client(), context.Background()
	db.Inject(dynamotest.DelayIndex(time.Second, time.Second), dynamotest.Index("by-owner"))
	createAccounts(ctx, client, "alice", 100)

	fmt.Println("immediately:", owned(ctx, client, "alice"))
	db.Clock().Advance(time.Second)
	fmt.Println("a second later:", owned(ctx, client, "alice"))
	// Output:
	// immediately: 0
	// a second later: 1
}

// An eventually consistent read returns what was there a second ago.
func ExampleStaleReads() {
	db := dynamotest.Open()
	defer db.Close()
	db.Clock().Freeze()
	client, ctx := db.Client(), context.Background()
	createAccounts(ctx, client, "alice", 100)
	db.Inject(dynamotest.StaleReads(time.Second, time.Second))
	fmt.Println("withdrawn:", Withdraw(ctx, client, "alice", 30) == nil)
	read := func() any {
		out, err := client.Scan(ctx, &dynamodb.ScanInput{TableName: aws.String("accounts")})
		if err != nil {
			panic(err)
		}
		return out.Items[0]["balance"].(*types.AttributeValueMemberN).Value
	}

	fmt.Println("immediately:", read())
	db.Clock().Advance(time.Second)
	fmt.Println("a second later:", read())
	// Output:
	// withdrawn: true
	// immediately: 100
	// a second later: 70
}

// Read while only a part of a transaction is visible.
func ExampleTear() {
	db := dynamotest.Open()
	defer db.Close()
	client, ctx := db.Client(), context.Background()
	createAccounts(ctx, client, "alice", 100)
	createAccounts(ctx, client, "bob", 100)

	db.Inject(dynamotest.Tear(func(ctx context.Context) {
		fmt.Println("in between:", balance(ctx, client, "alice"), balance(ctx, client, "bob"))
	}))
	add := func(account, amount string) types.TransactWriteItem {
		return types.TransactWriteItem{Update: &types.Update{
			TableName:                 aws.String("accounts"),
			Key:                       map[string]types.AttributeValue{"id": &types.AttributeValueMemberS{Value: account}},
			UpdateExpression:          aws.String("ADD balance :amount"),
			ExpressionAttributeValues: map[string]types.AttributeValue{":amount": &types.AttributeValueMemberN{Value: amount}},
		}}
	}
	_, err := client.TransactWriteItems(ctx, &dynamodb.TransactWriteItemsInput{
		TransactItems: []types.TransactWriteItem{add("alice", "-30"), add("bob", "30")},
	})

	fmt.Println("in the end:", balance(ctx, client, "alice"), balance(ctx, client, "bob"), err)
	// Output:
	// in between: 70 100
	// in the end: 70 130 <nil>
}

// A partition accepts one write unit a second. Its first second has one unit.
func ExampleWithPartitionLimits() {
	db := dynamotest.Open(dynamotest.WithPartitionLimits(1, 0))
	defer db.Close()
	db.Clock().Freeze()
	client, ctx := db.Client(), context.Background()
	createAccounts(ctx, client, "alice", 100) // one unit

	fmt.Println("in the same second:", Withdraw(ctx, client, "alice", 30) == nil)
	db.Clock().Advance(time.Second)
	fmt.Println("a second later:", Withdraw(ctx, client, "alice", 30) == nil)
	// Output:
	// in the same second: false
	// a second later: true
}

// Let an item expire.
func ExampleClock() {
	db := dynamotest.Open()
	defer db.Close()
	client, ctx := db.Client(), context.Background()
	createAccounts(ctx, client, "alice", 100)
	_, err := client.UpdateTimeToLive(ctx, &dynamodb.UpdateTimeToLiveInput{
		TableName:               aws.String("accounts"),
		TimeToLiveSpecification: &types.TimeToLiveSpecification{AttributeName: aws.String("expires"), Enabled: aws.Bool(true)},
	})
	if err != nil {
		panic(err)
	}
	tomorrow := db.Clock().Now().Add(24 * time.Hour).Unix()
	_, err = client.PutItem(ctx, &dynamodb.PutItemInput{
		TableName: aws.String("accounts"),
		Item: map[string]types.AttributeValue{
			"id":      &types.AttributeValueMemberS{Value: "guest"},
			"owner":   &types.AttributeValueMemberS{Value: "guest"},
			"expires": &types.AttributeValueMemberN{Value: fmt.Sprint(tomorrow)},
		},
	})
	if err != nil {
		panic(err)
	}

	fmt.Println("today:", owned(ctx, client, "guest"))
	db.Clock().Advance(25 * time.Hour)
	fmt.Println("tomorrow:", owned(ctx, client, "guest"))
	// Output:
	// today: 1
	// tomorrow: 0
}

// Serve the database over HTTP, for other programs.
func ExampleDB_Handler() {
	db := dynamotest.Open()
	defer db.Close()
	server := httptest.NewServer(db.Handler())
	defer server.Close()

	// For example: aws dynamodb list-tables --endpoint-url URL
	client := dynamodb.New(dynamodb.Options{
		Region: "eu-west-1", BaseEndpoint: &server.URL, Credentials: db.Client().Options().Credentials,
	})
	createAccounts(context.Background(), client, "alice", 100)
	fmt.Println(balance(context.Background(), db.Client(), "alice"))
	// Output: 100
}

// createAccounts creates the table if it is missing, with an index by owner, and an account in it.
func createAccounts(ctx context.Context, client *dynamodb.Client, account string, amount int) {
	_, _ = client.CreateTable(ctx, &dynamodb.CreateTableInput{
		TableName:   aws.String("accounts"),
		BillingMode: types.BillingModePayPerRequest,
		AttributeDefinitions: []types.AttributeDefinition{
			{AttributeName: aws.String("id"), AttributeType: types.ScalarAttributeTypeS},
			{AttributeName: aws.String("owner"), AttributeType: types.ScalarAttributeTypeS},
		},
		KeySchema: []types.KeySchemaElement{{AttributeName: aws.String("id"), KeyType: types.KeyTypeHash}},
		GlobalSecondaryIndexes: []types.GlobalSecondaryIndex{{
			IndexName:  aws.String("by-owner"),
			KeySchema:  []types.KeySchemaElement{{AttributeName: aws.String("owner"), KeyType: types.KeyTypeHash}},
			Projection: &types.Projection{ProjectionType: types.ProjectionTypeKeysOnly},
		}},
	})
	_, err := client.PutItem(ctx, &dynamodb.PutItemInput{
		TableName: aws.String("accounts"),
		Item: map[string]types.AttributeValue{
			"id":      &types.AttributeValueMemberS{Value: account},
			"owner":   &types.AttributeValueMemberS{Value: account},
			"balance": &types.AttributeValueMemberN{Value: fmt.Sprint(amount)},
		},
	})
	if err != nil {
		panic(err)
	}
}

func balance(ctx context.Context, client *dynamodb.Client, account string) string {
	out, err := client.GetItem(ctx, &dynamodb.GetItemInput{
		TableName:      aws.String("accounts"),
		Key:            map[string]types.AttributeValue{"id": &types.AttributeValueMemberS{Value: account}},
		ConsistentRead: aws.Bool(true),
	})
	if err != nil {
		panic(err)
	}
	return out.Item["balance"].(*types.AttributeValueMemberN).Value
}

func owned(ctx context.Context, client *dynamodb.Client, owner string) int {
	out, err := client.Query(ctx, &dynamodb.QueryInput{
		TableName: aws.String("accounts"), IndexName: aws.String("by-owner"),
		KeyConditionExpression:    aws.String("#o = :owner"),
		ExpressionAttributeNames:  map[string]string{"#o": "owner"},
		ExpressionAttributeValues: map[string]types.AttributeValue{":owner": &types.AttributeValueMemberS{Value: owner}},
	})
	if err != nil {
		panic(err)
	}
	return int(out.Count)
}
