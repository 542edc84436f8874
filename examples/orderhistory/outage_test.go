package main

import (
	"context"
	"io"
	"testing"
	"time"

	"github.com/aws/smithy-go"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/dynamotest"
	"github.com/millrace-dev/millrace/examples/internal/dynamo"
	"github.com/millrace-dev/millrace/journal"
)

// promptly is much shorter than the time limit of any part.
const promptly = 25 * time.Second

// calls are the operations on items. The table still exists, and DescribeTable reports it.
var calls = dynamotest.On("GetItem", "PutItem", "UpdateItem", "DeleteItem", "Query", "TransactWriteItems", "TransactGetItems", "BatchGetItem")

func TestAServerWhoseConsumerCannotBeginSaysWhyAndEnds(t *testing.T) {
	t.Parallel()
	db := dynamotest.New(t)
	db.Inject(dynamotest.Refuse(&smithy.GenericAPIError{Code: "AccessDeniedException", Message: "not for you"}), dynamotest.Table("ftgo-checkpoint"), calls)
	ended := make(chan error, 1)
	go func() {
		ended <- serve(t.Context(), &dynamo.Database{Client: db.Client()}, options{address: anyAddress, sample: true}, io.Discard, io.Discard)
	}()
	select {
	case err := <-ended:
		require.ErrorIs(t, err, journal.ErrAccess)
		assert.ErrorContains(t, err, "not for you")
	case <-time.After(promptly):
		require.Fail(t, "the server must not wait for what cannot begin")
	}
}

func TestAServerWhoseConsumerHasNotBegunCanBeInterrupted(t *testing.T) {
	t.Parallel()
	db := dynamotest.New(t)
	held := make(chan struct{}, 1)
	db.Inject(dynamotest.Hold(func(ctx context.Context) {
		select {
		case held <- struct{}{}:
		default:
		}
		<-ctx.Done() // the database does not reply
	}), dynamotest.Table("ftgo-checkpoint"), calls)
	ctx, interrupt := context.WithCancel(t.Context())
	defer interrupt()
	ended := make(chan error, 1)
	go func() {
		ended <- serve(ctx, &dynamo.Database{Client: db.Client()}, options{address: anyAddress, sample: true}, io.Discard, io.Discard)
	}()
	<-held
	interrupt()
	select {
	case err := <-ended:
		assert.NoError(t, err)
	case <-time.After(promptly):
		require.Fail(t, "the server must stop when it is interrupted")
	}
}
