package engine

import (
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/stretchr/testify/assert"
)

func TestATableNameIsANameOrTheARNOfATable(t *testing.T) {
	t.Parallel()
	for given, name := range map[string]string{
		"tab":                    "tab",
		"A-b_c.9":                "A-b_c.9",
		strings.Repeat("t", 255): strings.Repeat("t", 255),
		"arn:aws:dynamodb:us-east-1:000000000000:table/tab":       "tab",
		"arn:aws-cn:dynamodb:cn-north-1:123456789012:table/a.b-c": "a.b-c",
	} {
		assert.NoError(t, checkTableName(&given), given)
		assert.Equal(t, name, tableName(given))
	}
}

func TestOtherTableNamesAreRefused(t *testing.T) {
	t.Parallel()
	assertAPIError(t, checkTableName(nil), validation, "The parameter 'TableName' is required but was not present in the request")
	for given, text := range map[string]string{
		"":                       "TableName must be at least 3 characters long and at most 255 characters long",
		"ab":                     "TableName must be at least 3 characters long and at most 255 characters long",
		strings.Repeat("t", 256): "TableName must be at least 3 characters long and at most 255 characters long",
		"tab;": "1 validation error detected: Value 'tab;' at 'tableName' failed to satisfy constraint: " +
			"Member must satisfy regular expression pattern: [a-zA-Z0-9_.-]+",
		"täb": "1 validation error detected: Value 'täb' at 'tableName' failed to satisfy constraint: " +
			"Member must satisfy regular expression pattern: [a-zA-Z0-9_.-]+",
		"arn:aws:dynamodb:us-east-1:000000000000:table/ab": "1 validation error detected: " +
			"Value 'arn:aws:dynamodb:us-east-1:000000000000:table/ab' at 'tableName' failed to satisfy constraint: " +
			"Member must be the name of a table or the ARN of one",
		"arn:aws:dynamodb:us-east-1:000000000000:table/tab/index/gix": "1 validation error detected: " +
			"Value 'arn:aws:dynamodb:us-east-1:000000000000:table/tab/index/gix' at 'tableName' failed to satisfy constraint: " +
			"Member must be the name of a table or the ARN of one",
		"arn:aws:sqs:us-east-1:000000000000:table/tab": "1 validation error detected: " +
			"Value 'arn:aws:sqs:us-east-1:000000000000:table/tab' at 'tableName' failed to satisfy constraint: " +
			"Member must be the name of a table or the ARN of one",
	} {
		assertAPIError(t, checkTableName(aws.String(given)), validation, text)
	}
}

// AllocsPerRun requires that it is not parallel
func TestATableNameIsFoundWithoutAllocating(t *testing.T) {
	name, arn := "tab", tableARN("tab")
	assert.Zero(t, testing.AllocsPerRun(100, func() {
		if checkTableName(&name) != nil || checkTableName(&arn) != nil || tableName(name) != tableName(arn) {
			t.Fail()
		}
	}))
}
