package costs

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/dynamotest"
	"github.com/millrace-dev/millrace/internal/testjournal"
	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/repository"
)

// setFirstFormat changes packed tables so that no journal compresses in them.
func setFirstFormat(t *testing.T, db *dynamotest.DB) {
	t.Helper()
	_, err := db.Client().UpdateItem(t.Context(), &dynamodb.UpdateItemInput{
		TableName: aws.String("journal"),
		Key: map[string]types.AttributeValue{
			"pkey": &types.AttributeValueMemberS{Value: "millrace"}, "skey": &types.AttributeValueMemberN{Value: "0"},
		},
		UpdateExpression:          aws.String("SET millrace_format = :one"),
		ExpressionAttributeValues: map[string]types.AttributeValue{":one": &types.AttributeValueMemberN{Value: "1"}},
	})
	require.NoError(t, err)
}

// plain returns a world in the packed layout whose journal does not compress.
func plain(t *testing.T) world {
	t.Helper()
	return newWorld(t, journal.Packed)
}

// compressing returns a world in the packed layout whose journal compresses.
func compressing(t *testing.T) world {
	t.Helper()
	db := dynamotest.New(t)
	return world{t, db, testjournal.New(t, db.Client(), journal.Config{Shards: 4, Layout: journal.Packed})}
}

// sample returns a text that compresses as the JSON of an account with members does. It consists
// of names of fields and of random ids.
func sample(seed, size int) string {
	random := rand.New(rand.NewPCG(uint64(seed), 0)) //nolint:gosec // it is no secret
	ulid := func() string {
		text := []byte("01H42K--------------------")
		for i := 6; i < len(text); i++ {
			text[i] = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"[random.IntN(32)]
		}
		return string(text)
	}
	var b strings.Builder
	for b.Len() < size {
		member := ulid()
		fmt.Fprintf(&b, "'%s':'%s','%s':{'id':'%s','user_account_id':{'value':'%08x-%04x-%04x-%04x-%012x'},'role':'Admin'},",
			ulid(), member, member, member, random.Uint32(), random.IntN(1<<16), random.IntN(1<<16), random.IntN(1<<16), random.Int64N(1<<48))
	}
	return b.String()[:size]
}

// loaded measures Load.
func (w world) loaded() bill {
	w.t.Helper()
	r := w.repository(repository.Config{})
	return w.bill(func(ctx context.Context) error {
		_, err := r.Load(ctx, id)
		return err
	})
}
