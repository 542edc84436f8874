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

// spoil changes a request before it is sent.
func (w *wire) spoil(in any) any {
	if q, ok := in.(*dynamodb.QueryInput); ok && w.isOverlooked(q) {
		return emptied(q)
	}
	if u, ok := in.(*dynamodb.UpdateItemInput); ok && w.inBursts && w.sabotage == Overtake && text(u.Key["skey"]) == cursorRow {
		spoiled := *u
		spoiled.ExpressionAttributeValues = maps.Clone(u.ExpressionAttributeValues)
		spoiled.ExpressionAttributeValues[valueCursor] = numberValue(uint64(time.Now().UnixMilli())) //nolint:gosec // a time
		return &spoiled
	}
	return w.sabotage.spoil(in)
}

// isOverlooked reports whether a query is a trailing read that must find nothing. The last trailing
// read is older than three quarters of the trailing delay, which is more than the error of clocks.
func (w *wire) isOverlooked(q *dynamodb.QueryInput) bool {
	if requestOf(q) != tailQueries || q.ProjectionExpression == nil {
		return false
	}
	until := time.UnixMilli(int64(number(q.ExpressionAttributeValues[":until"]))) //nolint:gosec // a time
	isLast := time.Since(until) > w.trailing*3/4
	return w.sabotage == Blink && !isLast || w.sabotage == Overlook && isLast
}

// emptied returns the query for a shard that does not exist.
func emptied(q *dynamodb.QueryInput) *dynamodb.QueryInput {
	empty := *q
	empty.ExclusiveStartKey = nil
	empty.ExpressionAttributeValues = maps.Clone(q.ExpressionAttributeValues)
	empty.ExpressionAttributeValues[":shard"] = &types.AttributeValueMemberS{Value: "none"}
	return &empty
}

// spoilReply changes the reply to a member that claims positions, by a write or by a strongly
// consistent read, or that reads a head.
func (w *wire) spoilReply(in any, response *http.Response) error {
	var spoil func(reply []byte) ([]byte, error)
	switch {
	case w.sabotage == Omit && w.member.name == exporterName && requestOf(in) == headReads:
		spoil = w.omit
	case w.member.group == "":
	case (w.sabotage == Rewind || w.sabotage == Recall) && (isClaim(in) || isPositionRead(in)):
		spoil = w.misremember
	case w.sabotage == Overrun && requestOf(in) == headReads:
		spoil = overrun
	}
	if spoil == nil {
		return nil
	}
	body, err := io.ReadAll(response.Body)
	if err != nil {
		return err
	}
	_ = response.Body.Close()
	if spoiled, err := spoil(body); err == nil {
		body = spoiled
	}
	response.Body, response.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	response.Header.Set("Content-Length", strconv.Itoa(len(body)))
	return nil
}

// overrun changes a head in a reply: if it is truncated, it is truncated one event further.
func overrun(reply []byte) ([]byte, error) {
	return changeNumber(reply, "truncated_before", func(before uint64) uint64 { return before + 1 })
}

// omit sometimes changes a head in a reply so that it has one event less.
func (w *wire) omit(reply []byte) ([]byte, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return changeNumber(reply, "version", func(version uint64) uint64 {
		if version > 1 && w.random.IntN(10) == 0 {
			version--
		}
		return version
	})
}

// changeNumber changes a number of the item in a reply, if the item has it.
func changeNumber(reply []byte, attribute string, change func(uint64) uint64) ([]byte, error) {
	var got map[string]any
	if err := json.Unmarshal(reply, &got); err != nil {
		return nil, err
	}
	row, _ := got["Item"].(map[string]any)
	if value, ok := row[attribute].(map[string]any); ok {
		text, _ := value["N"].(string)
		n, err := strconv.ParseUint(text, 10, 64)
		if err != nil {
			return nil, err
		}
		value["N"] = strconv.FormatUint(change(n), 10)
	}
	return json.Marshal(got)
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

// noteKnown records the positions that a process has stored itself.
func (w *wire) noteKnown(in any) {
	if u, ok := in.(*dynamodb.UpdateItemInput); ok && w.sabotage == Recall && aws.ToString(u.TableName) == checkpointTable {
		w.known[text(u.Key["pkey"])+" "+text(u.Key["skey"])] = numberText(u.ExpressionAttributeValues[valueTo])
	}
}
