package sim

import (
	"bytes"
	"encoding/json"
	"io"
	"maps"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// spoil changes a request that is about to be sent.
func (w *wire) spoil(in any) any {
	if q, ok := in.(*dynamodb.QueryInput); ok && w.isOverlooked(q) {
		return emptied(q)
	}
	return w.sabotage.spoil(in)
}

// isOverlooked reports whether a query is a trailing read that must not find anything. The last one
// is older than three quarters of the trailing delay, which clocks are not off by.
func (w *wire) isOverlooked(q *dynamodb.QueryInput) bool {
	if requestOf(q) != tailQueries || q.ProjectionExpression == nil {
		return false
	}
	until := time.UnixMilli(int64(number(q.ExpressionAttributeValues[":until"]))) //nolint:gosec // a time
	isLast := time.Since(until) > w.trailing*3/4
	return w.sabotage == Blink && !isLast || w.sabotage == Overlook && isLast
}

// emptied is a query of a shard that does not exist.
func emptied(q *dynamodb.QueryInput) *dynamodb.QueryInput {
	empty := *q
	empty.ExclusiveStartKey = nil
	empty.ExpressionAttributeValues = maps.Clone(q.ExpressionAttributeValues)
	empty.ExpressionAttributeValues[":shard"] = &types.AttributeValueMemberS{Value: "none"}
	return &empty
}

// spoilReply changes what a member is told that claims positions, by a write or by a strongly
// consistent read.
func (w *wire) spoilReply(in any, response *http.Response) error {
	if w.sabotage != Rewind && w.sabotage != Recall || w.member.group == "" || !isClaim(in) && !isPositionRead(in) {
		return nil
	}
	body, err := io.ReadAll(response.Body)
	if err != nil {
		return err
	}
	_ = response.Body.Close()
	if spoiled, err := w.misremember(body); err == nil {
		body = spoiled
	}
	response.Body, response.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	response.Header.Set("Content-Length", strconv.Itoa(len(body)))
	return nil
}

// misremember changes the positions in a reply.
func (w *wire) misremember(reply []byte) ([]byte, error) {
	type row = map[string]any
	var got map[string]any
	if err := json.Unmarshal(reply, &got); err != nil {
		return nil, err
	}
	var rows []any
	if responses, ok := got["Responses"].(map[string]any); ok {
		rows, _ = responses[checkpointTable].([]any)
	}
	for _, r := range append(rows, got["Attributes"], got["Item"]) {
		attributes, _ := r.(row)
		key, _ := attributes["skey"].(row)
		sort, _ := key["S"].(string)
		position, _ := attributes[attrPosition].(row)
		if !strings.HasPrefix(sort, positionPrefix) || position == nil {
			continue
		}
		if w.sabotage == Rewind {
			delete(attributes, attrPosition)
			continue
		}
		partition, _ := attributes["pkey"].(row)
		name := partition["S"].(string) + " " + sort //nolint:forcetypeassert // a key
		if known, ok := w.known[name]; ok {
			position["N"] = known
		} else {
			w.known[name], _ = position["N"].(string)
		}
	}
	return json.Marshal(got)
}

// noteKnown notes what a process knows of a position that it has stored itself.
func (w *wire) noteKnown(in any) {
	if u, ok := in.(*dynamodb.UpdateItemInput); ok && w.sabotage == Recall && aws.ToString(u.TableName) == checkpointTable {
		w.known[text(u.Key["pkey"])+" "+text(u.Key["skey"])] = numberText(u.ExpressionAttributeValues[valueTo])
	}
}
