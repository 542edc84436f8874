package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/millrace-dev/millrace/internal/dynamo"
	"github.com/millrace-dev/millrace/internal/table"
	"github.com/millrace-dev/millrace/journal/journaltype"
)

// requireEncodings returns an error with that reason if a payload lacks a required encoding.
func (j *Engine) requireEncodings(at journaltype.Place, names string, reason error) error {
	applied := strings.Split(names, ",")
	for _, all := range [][]string{j.Config.RequiredEncodings, j.Config.RequiredByType[at.Aggregate.Type]} {
		for _, required := range all {
			if !slices.Contains(applied, required) {
				return &journaltype.EncodingError{Place: at, Encoding: required, Err: reason}
			}
		}
	}
	return nil
}

// requiredByType holds the names of encodings by aggregate type.
type requiredByType map[string][]string

// with returns the names of both, sorted.
func (r requiredByType) with(other requiredByType) requiredByType {
	all := requiredByType{}
	for _, each := range []requiredByType{r, other} {
		for aggregateType, names := range each {
			all[aggregateType] = slices.Compact(slices.Sorted(slices.Values(slices.Concat(all[aggregateType], names))))
		}
	}
	return all
}

// String returns the names as JSON, as the descriptor holds them.
func (r requiredByType) String() string {
	text, _ := json.Marshal(r.with(nil)) // a map of strings always marshals
	return string(text)
}

// requireMore adds the encodings of given to a stored descriptor that lacks them, and returns the
// new one. It refuses a type that has aggregates, because their payloads may lack the encoding, and
// could not be read any more.
func (j *Engine) requireMore(ctx context.Context, stored, given Descriptor) (Descriptor, error) {
	all := requiredByType(stored.RequiredByType).with(given.RequiredByType)
	for _, aggregateType := range slices.Sorted(maps.Keys(all)) {
		if slices.Equal(all[aggregateType], stored.RequiredByType[aggregateType]) {
			continue
		}
		for head, err := range j.Heads(ctx, journaltype.HeadsQuery{AggregateType: aggregateType, Limit: 1}) {
			if err != nil {
				return stored, err
			}
			return stored, &journaltype.ConfigError{Field: "RequiredByType", Reason: fmt.Sprintf(
				"adds encodings of type %q, which has aggregates, such as %s: payloads without them could not be read any more; use another type",
				aggregateType, head.Aggregate)}
		}
	}
	name, key := j.Config.Tables.Journal, j.Layout.DescriptorKey()
	update := &dynamodb.UpdateItemInput{
		TableName: &name, Key: key, UpdateExpression: aws.String("SET #r = :new"),
		ExpressionAttributeNames:  map[string]string{"#r": attrRequiredByType},
		ExpressionAttributeValues: table.Item{":new": table.StringValue(all.String())},
		ConditionExpression:       aws.String("attribute_not_exists(#r)"),
	}
	if len(stored.RequiredByType) > 0 {
		update.ConditionExpression = aws.String("#r = :old")
		update.ExpressionAttributeValues[":old"] = table.StringValue(requiredByType(stored.RequiredByType).String())
	}
	_, err := j.Client.UpdateItem(ctx, update)
	var changed *types.ConditionalCheckFailedException
	if err != nil && !errors.As(err, &changed) {
		return stored, dynamo.Explain(err, name)
	}
	return j.ReadDescriptor(ctx) // another process may have changed it
}
