package howto_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/ThreeDotsLabs/watermill"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace"
	"github.com/millrace-dev/millrace/dynamotest"
	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/projection/readmodel"
	"github.com/millrace-dev/millrace/repository"
	"github.com/millrace-dev/millrace/test/docs/howto/rebuild"
	"github.com/millrace-dev/millrace/test/docs/howto/shop"
)

type add = func(context.Context, *millrace.App, *dynamodb.Client) (*readmodel.Model, error)

// serve runs a release of the program, which has placed an order of 30 by ada.
func serve(t *testing.T, client *dynamodb.Client, add add) *readmodel.Model {
	t.Helper()
	app, err := millrace.Open(t.Context(), client, millrace.Config{Prefix: "shop-", Journal: journal.Config{Layout: journal.Packed, Shards: 2}})
	require.NoError(t, err)
	orders, err := millrace.Repository(app, shop.Orders, repository.Config{})
	require.NoError(t, err)
	model, err := add(t.Context(), app, client)
	require.NoError(t, err)
	stop, err := app.Start(t.Context())
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, stop()) })
	_, err = orders.Execute(t.Context(), watermill.NewUUID(), shop.Place("ada", 30))
	require.NoError(t, err)
	return model
}

func eventuallyTotal(t *testing.T, client *dynamodb.Client, model *readmodel.Model, customer string, expected int) {
	t.Helper()
	require.Eventually(t, func() bool {
		total, err := rebuild.Total(t.Context(), client, model, customer)
		return err == nil && total == expected
	}, time.Minute, 20*time.Millisecond)
}

func TestTheNextGenerationServesAfterARebuild(t *testing.T) {
	t.Parallel()
	client := dynamotest.New(t).Client()
	model := serve(t, client, rebuild.Add)
	eventuallyTotal(t, client, model, "ada", 30)

	require.NoError(t, rebuild.Rebuild(t.Context(), model))

	all, err := model.Generations(t.Context())
	require.NoError(t, err)
	assert.EqualValues(t, 2, all.Serving.Number)
	eventuallyTotal(t, client, model, "ada", 30)
}

func TestAReleaseWithAnotherFormKeepsTheFormerOne(t *testing.T) {
	t.Parallel()
	client := dynamotest.New(t).Client()
	former := serve(t, client, rebuild.Add)
	eventuallyTotal(t, client, former, "ada", 30)
	model := serve(t, client, rebuild.AddForms)
	eventuallyTotal(t, client, model, "ada", 60)

	require.NoError(t, rebuild.Rebuild(t.Context(), model))

	eventuallyTotal(t, client, model, "ada "+time.Now().UTC().Format("2006-01"), 60)
	require.Eventually(t, func() bool {
		_, err := former.Serving(t.Context())
		return errors.As(err, new(*readmodel.FormError))
	}, time.Minute, 20*time.Millisecond)
}
