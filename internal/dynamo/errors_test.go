package dynamo_test

import (
	"errors"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/internal/dynamo"
)

func TestExplainKeepsWhatItDoesNotKnow(t *testing.T) {
	t.Parallel()
	plain := errors.New("plain")
	assert.NoError(t, dynamo.Explain(nil, "table"))
	assert.Equal(t, plain, dynamo.Explain(plain, "table"))
	err := dynamo.Explain(&types.ResourceNotFoundException{}, "positions")
	require.ErrorIs(t, err, dynamo.ErrTableMissing)
	assert.ErrorContains(t, err, `"positions"`)
}
