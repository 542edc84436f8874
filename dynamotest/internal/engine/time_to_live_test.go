package engine

import (
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/internal/dynamolocal/dynamolocaltest"
)

func timeToLive(attribute string, enabled bool) *dynamodb.UpdateTimeToLiveInput {
	return &dynamodb.UpdateTimeToLiveInput{
		TimeToLiveSpecification: &types.TimeToLiveSpecification{AttributeName: &attribute, Enabled: &enabled},
	}
}

func TestTimeToLiveIsDescribedAsItWasSet(t *testing.T) {
	t.Parallel()
	for name, to := range map[string]any{"engine": New(Config{}), "DynamoDB Local": dynamolocaltest.Client(t)} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := call(t.Context(), to, "tab", byRequest())
			require.NoError(t, err)
			assertTimeToLive(t, to, types.TimeToLiveDescription{TimeToLiveStatus: types.TimeToLiveStatusDisabled})
			for _, attribute := range []string{"expires", "other"} {
				out, err := call(t.Context(), to, "tab", timeToLive(attribute, true))
				require.NoError(t, err)
				assert.Equal(t, timeToLive(attribute, true).TimeToLiveSpecification, out.(*dynamodb.UpdateTimeToLiveOutput).TimeToLiveSpecification)
				assertTimeToLive(t, to, types.TimeToLiveDescription{
					TimeToLiveStatus: types.TimeToLiveStatusEnabled, AttributeName: aws.String(attribute),
				})
				_, err = call(t.Context(), to, "tab", timeToLive(attribute, false))
				require.NoError(t, err)
				assertTimeToLive(t, to, types.TimeToLiveDescription{TimeToLiveStatus: types.TimeToLiveStatusDisabled})
			}
		})
	}
}

func assertTimeToLive(t *testing.T, to any, want types.TimeToLiveDescription) {
	t.Helper()
	out, err := call(t.Context(), to, "tab", &dynamodb.DescribeTimeToLiveInput{})
	require.NoError(t, err)
	assert.Equal(t, &want, out.(*dynamodb.DescribeTimeToLiveOutput).TimeToLiveDescription)
}

func TestTimeToLiveRefuses(t *testing.T) {
	t.Parallel()
	refusedAsExpected(t, timeToLiveRefusals())
}

func TestTimeToLiveRefusesWhatDynamoDBLocalRefuses(t *testing.T) {
	t.Parallel()
	refusedByDynamoDBLocal(t, timeToLiveRefusals())
}

func timeToLiveRefusals() []refusal {
	other := "TimeToLive is active on a different AttributeName"
	return []refusal{
		{
			name: "enabling twice", before: []any{byRequest(), timeToLive("expires", true)}, request: timeToLive("expires", true),
			code: validation, text: "TimeToLive is already enabled",
		},
		{
			name: "enabling another attribute", before: []any{byRequest(), timeToLive("expires", true)}, request: timeToLive("other", true),
			code: validation, text: other + ": current AttributeName is expires", local: other,
		},
		{
			name: "disabling another attribute", before: []any{byRequest(), timeToLive("expires", true)}, request: timeToLive("other", false),
			code: validation, text: other + ": current AttributeName is expires", local: other,
		},
		{
			name: "disabling what is not enabled", before: []any{byRequest()}, request: timeToLive("expires", false),
			code: validation, text: "TimeToLive is already disabled",
		},
		{
			name: "an attribute without name", before: []any{byRequest()}, request: timeToLive("", true), code: validation,
			text: "1 validation error detected: Value '' at 'timeToLiveSpecification.attributeName' failed to satisfy constraint: " +
				"Member must have length greater than or equal to 1",
			local: "Names of key attributes and attributes projected into an index must be between 1 and 255 characters, inclusive",
		},
		{
			name: "no specification", request: &dynamodb.UpdateTimeToLiveInput{}, code: validation,
			text: "1 validation error detected: Value null at 'timeToLiveSpecification' failed to satisfy constraint: " +
				"Member must not be null",
			differs: refusedBySDK,
		},
		{
			name: "a missing table", request: timeToLive("expires", true), code: missing,
			text: "Requested resource not found: Table: tab not found", local: "Cannot do operations on a non-existent table",
		},
		{
			name: "to describe a missing table", request: &dynamodb.DescribeTimeToLiveInput{}, code: missing,
			text: "Requested resource not found: Table: tab not found", local: "Cannot do operations on a non-existent table",
		},
	}
}
