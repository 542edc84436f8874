package readmodel_test

import (
	"context"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/projection/readmodel"
	"github.com/millrace-dev/millrace/subscriber/groups"
)

// release is a program that knows forms of the read model.
func (w *world) release(forms ...string) *readmodel.Model {
	w.t.Helper()
	config := w.config()
	config.Forms = forms
	return w.open(config)
}

// runs makes a program consume, and returns a function that lists the generations that it has
// consumed so far.
func (w *world) runs(m *readmodel.Model) (consumed func() []readmodel.Generation, stop func()) {
	var mu sync.Mutex
	var seen []readmodel.Generation
	ctx, cancel := context.WithCancel(w.t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		assert.ErrorIs(w.t, m.Run(ctx, func(ctx context.Context, g readmodel.Generation) error {
			mu.Lock()
			seen = append(seen, g)
			mu.Unlock()
			return w.consume(ctx, g)
		}), context.Canceled)
	}()
	stop = func() { cancel(); <-ended }
	w.t.Cleanup(stop)
	return func() []readmodel.Generation {
		mu.Lock()
		defer mu.Unlock()
		return slices.Clone(seen)
	}, stop
}

func TestAnOldProgramLeavesTheNewFormAlone(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.write("a", 0, 10)
	old := w.release("1")
	oldConsumes, stopOld := w.runs(old)
	first := mustServing(t, old)
	assert.Equal(t, readmodel.Generation{Model: "totals", Number: 1, Form: "1"}, first)
	require.NoError(t, old.CatchUp(t.Context(), first, nil))

	next := w.release("1", "2") // a rolling deployment: both releases run
	newConsumes, _ := w.runs(next)
	second := mustBegin(t, next)
	assert.Equal(t, readmodel.Generation{Model: "totals", Number: 2, Form: "2"}, second)
	require.NoError(t, next.CatchUp(t.Context(), second, nil))
	require.Eventually(t, func() bool { return len(newConsumes()) == 2 }, patience, time.Millisecond)
	stopOld()
	assert.Equal(t, []readmodel.Generation{first}, oldConsumes())
	assert.ElementsMatch(t, []readmodel.Generation{first, second}, newConsumes())

	require.NoError(t, next.Switch(t.Context(), readmodel.Generation{Model: "totals", Number: 2}), "its number says which is meant")
	serving := mustServing(t, next)
	assert.Equal(t, second, serving)
	_, err := old.Generations(t.Context()) // so that it does not use an earlier result
	require.NoError(t, err)
	_, err = old.Serving(t.Context())
	var form *readmodel.FormError
	require.ErrorAs(t, err, &form)
	require.ErrorAs(t, err, new(*readmodel.FormError))
	assert.Equal(t, second, form.Generation)
	back, err := next.Rollback(t.Context(), second)
	require.NoError(t, err)
	assert.Equal(t, first, back)
	require.NoError(t, next.Drop(t.Context(), second, groups.RemoveOptions{}))
}

func TestAGenerationThatNobodyKnowsTheFormOfSaysWhoIsMissing(t *testing.T) {
	t.Parallel()
	w := setup(t)
	m := w.release()
	config := w.config()
	config.Forms = []string{"2"}
	tool, err := readmodel.OpenExisting(t.Context(), w.client, config)
	require.NoError(t, err)
	next := mustBegin(t, tool)
	err = m.Switch(t.Context(), readmodel.Generation{Model: "totals", Number: next.Number})
	require.ErrorAs(t, err, new(*readmodel.BehindError))
	require.ErrorContains(t, err, `programs that know the form "2"`)
}

func TestAToolKnowsEveryFormAndBeginsTheOneThatServes(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.release("1")
	tool := w.tool()
	serving := mustServing(t, tool)
	assert.Equal(t, "1", serving.Form)
	mustBegin(t, w.release("1", "2"))
	next := mustBegin(t, tool)
	assert.Equal(t, readmodel.Generation{Model: "totals", Number: 3, Form: "1"}, next)
	all, err := readmodel.List(t.Context(), w.client, "")
	require.NoError(t, err)
	second := readmodel.Generation{Model: "totals", Number: 2, Form: "2"}
	assert.Equal(t, []readmodel.Generations{{Live: []readmodel.Generation{serving, second, next}, Serving: serving}}, all)
	require.NoError(t, tool.Drop(t.Context(), second, groups.RemoveOptions{}))
	mustBegin(t, tool)
	left, err := tool.Generations(t.Context())
	require.NoError(t, err)
	assert.Equal(t, []readmodel.Generation{serving, next, {Model: "totals", Number: 4, Form: "1"}}, left.Live)
}

func TestAnItemFromBeforeThereWereFormsIsOfTheOneWithoutAName(t *testing.T) {
	t.Parallel()
	w := setup(t)
	plain := w.release()
	mustBegin(t, plain)
	update := func(expression string, values item) {
		t.Helper()
		_, err := w.client.UpdateItem(t.Context(), &dynamodb.UpdateItemInput{
			TableName: aws.String(readmodel.DefaultTable), Key: item{"name": &types.AttributeValueMemberS{Value: "totals"}},
			UpdateExpression: aws.String(expression), ExpressionAttributeNames: map[string]string{"#f": "forms"}, ExpressionAttributeValues: values,
		})
		require.NoError(t, err)
	}
	update("REMOVE #f", nil)
	first := mustServing(t, plain)
	_, err := w.release("2").Serving(t.Context())
	require.ErrorAs(t, err, new(*readmodel.FormError))
	next := w.release("", "2")
	serving := mustServing(t, next)
	assert.Equal(t, first, serving)
	third := mustBegin(t, next)
	assert.Equal(t, readmodel.Generation{Model: "totals", Number: 3, Form: "2"}, third)

	for _, odd := range []types.AttributeValue{
		&types.AttributeValueMemberS{Value: "2"},
		&types.AttributeValueMemberM{Value: item{"two": &types.AttributeValueMemberS{Value: "2"}}},
		&types.AttributeValueMemberM{Value: item{"2": &types.AttributeValueMemberBOOL{Value: true}}},
	} {
		update("SET #f = :f", item{":f": odd})
		_, err = next.Generations(t.Context())
		require.ErrorIs(t, err, readmodel.ErrCorrupt)
	}
}

func TestFormsHaveNamesThatCanBePrinted(t *testing.T) {
	t.Parallel()
	w := setup(t)
	for _, form := range []string{"a b", strings.Repeat("x", 101)} {
		config := w.config()
		config.Forms = []string{"1", form}
		_, err := readmodel.Open(t.Context(), w.client, config)
		var invalid *readmodel.ConfigError
		require.ErrorAs(t, err, &invalid)
		assert.Equal(t, "Forms", invalid.Field)
	}
}
