package draw_test

import (
	"fmt"
	"io"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/dynamotest"
	"github.com/millrace-dev/millrace/internal/testdb"
	"github.com/millrace-dev/millrace/test/draw"
)

// run puts 200 items over a connection that fails. It returns the items whose put failed, and the
// number of stored items before and after the late requests arrive.
func run(t *testing.T, seed uint64, network draw.Network) (failed []string, before, after int) {
	t.Helper()
	db := dynamotest.New(t)
	_, err := db.Client().CreateTable(t.Context(), &dynamodb.CreateTableInput{
		TableName: aws.String("tab"), BillingMode: types.BillingModePayPerRequest,
		AttributeDefinitions: []types.AttributeDefinition{{AttributeName: aws.String("id"), AttributeType: types.ScalarAttributeTypeS}},
		KeySchema:            []types.KeySchemaElement{{AttributeName: aws.String("id"), KeyType: types.KeyTypeHash}},
	})
	require.NoError(t, err)
	count := func() int {
		out, err := db.Client().Scan(t.Context(), &dynamodb.ScanInput{TableName: aws.String("tab")})
		require.NoError(t, err)
		return int(out.Count)
	}
	proxy := dynamotest.NewProxy(t, db.Client())
	var mix draw.FaultMix
	mix.InjectNetwork(draw.New(seed, 0), proxy, network)
	client := proxy.Client(testdb.Once)
	for i := range 200 {
		id := fmt.Sprint(i)
		_, err := client.PutItem(t.Context(), &dynamodb.PutItemInput{
			TableName: aws.String("tab"), Item: map[string]types.AttributeValue{"id": &types.AttributeValueMemberS{Value: id}},
		})
		if err != nil {
			require.ErrorIs(t, err, io.ErrUnexpectedEOF)
			failed = append(failed, id)
		}
	}
	before = count()
	mix.End()
	_, err = client.Scan(t.Context(), &dynamodb.ScanInput{TableName: aws.String("tab")})
	require.NoError(t, err, "no fault is left")
	return failed, before, count()
}

func TestAConnectionFailsAsOftenAsItShould(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		network            draw.Network
		before, afterwards bool // everything is stored
	}{
		"cut":           {draw.Network{Cut: 0.2}, false, false},
		"lost":          {draw.Network{Lost: 0.2}, true, true},
		"late":          {draw.Network{Late: 0.2}, false, true},
		"late, hurried": {draw.Network{Late: 0.2, LateBy: time.Hour}, false, true},
		"late reads":    {draw.Network{Lost: 0.2, Late: 1, LateOperations: []string{"GetItem"}}, true, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			failed, before, after := run(t, 1, test.network)
			assert.InDelta(t, 40, len(failed), 20)
			assert.Equal(t, test.before, before == 200)
			assert.Equal(t, test.afterwards, after == 200)
		})
	}
}

func TestASeedDecidesWhatFails(t *testing.T) {
	t.Parallel()
	network := draw.Network{Cut: 0.1, Lost: 0.1, Late: 0.1}
	first, _, _ := run(t, 1, network)
	again, _, _ := run(t, 1, network)
	other, _, _ := run(t, 2, network)
	assert.Equal(t, first, again)
	assert.NotEqual(t, first, other)
}

func TestADurationIsWithinItsBounds(t *testing.T) {
	t.Parallel()
	r := draw.New(1, 1)
	seen := map[time.Duration]bool{}
	for range 100 {
		seen[draw.UpTo(r, 2)] = true
	}
	assert.Equal(t, map[time.Duration]bool{0: true, 1: true, 2: true}, seen)
}
