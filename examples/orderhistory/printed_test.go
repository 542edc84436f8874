package main

import (
	"context"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/dynamotest"
)

func TestThePrintedCommandsWorkInTheirOrder(t *testing.T) {
	t.Parallel()
	for _, program := range []string{"bash", "curl"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skip("needs " + program)
		}
	}
	db := dynamotest.New(t)
	// The delivery is scheduled after some attempts, so the courier is too early at first.
	db.Inject(dynamotest.Throttle(), dynamotest.Matching(isFor("delivery-first")), dynamotest.Times(8))
	s := start(t, db.Client(), true)
	_, after, _ := strings.Cut(s.out.String(), ", or try\n\n")
	printed, _, found := strings.Cut(after, "\n\n")
	require.True(t, found, s.out)

	ctx, stop := context.WithTimeout(t.Context(), patience)
	defer stop()
	// A command that fails ends the script. At its end the stream must still run.
	script := "set -e; trap 'kill $!' EXIT\n" + strings.NewReplacer("curl ", "curl -sSf ", "/events &", "/events >/dev/null &").Replace(printed)
	typed, err := exec.CommandContext(ctx, "bash", "-c", script).CombinedOutput() //nolint:gosec // the script is our own
	require.NoError(t, err, "%s\n%s", printed, typed)
	lines := strings.Split(strings.TrimSpace(string(typed)), "\n")
	assert.Contains(t, lines[0], `{"orders":[`)
	assert.Contains(t, lines[len(lines)-1], `"deliveryStatus":"PICKED_UP"`)
}

// isFor reports whether a request commits events of an aggregate.
func isFor(aggregate string) func(string, any) bool {
	return func(_ string, input any) bool {
		commit, ok := input.(*dynamodb.TransactWriteItemsInput)
		return ok && slices.ContainsFunc(commit.TransactItems, func(item types.TransactWriteItem) bool {
			if item.Put == nil {
				return false
			}
			id, _ := item.Put.Item["aid"].(*types.AttributeValueMemberS)
			return id != nil && id.Value == aggregate
		})
	}
}
