package sim

import (
	"context"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/millrace-dev/millrace/dynamotest"
	"github.com/millrace-dev/millrace/test/draw"
)

// request is a kind of request of the read side.
type request string

const (
	tailQueries        request = "tail queries"
	headReads          request = "heads"
	positionReading    request = "position reads"
	positionWriting    request = "position writes"
	membershipRequests request = "membership"
	listRequests       request = "list entries"
	transactions       request = "transactions"
)

var requests = []request{tailQueries, headReads, positionReading, positionWriting, membershipRequests, listRequests, transactions}

const (
	journalTable  = "journal"
	snapshotTable = "snapshot"
	tailIndex     = "journal-tail-index"
	behindPrefix  = "behind/"
)

// requestOf returns the kind of a request, or "" for other requests.
func requestOf(in any) request {
	switch in := in.(type) {
	case *dynamodb.TransactWriteItemsInput:
		return transactions
	case *dynamodb.PutItemInput:
		if aws.ToString(in.TableName) == journalTable {
			return transactions // a commit in the packed layout
		}
	case *dynamodb.QueryInput:
		return queryOf(in)
	case *dynamodb.GetItemInput:
		return readOf(aws.ToString(in.TableName), in.Key)
	case *dynamodb.BatchGetItemInput:
		for table, asked := range in.RequestItems {
			return readOf(table, asked.Keys[0])
		}
	case *dynamodb.UpdateItemInput:
		return writeOf(aws.ToString(in.TableName), in.Key)
	case *dynamodb.DeleteItemInput:
		return writeOf(aws.ToString(in.TableName), in.Key)
	}
	return ""
}

func queryOf(in *dynamodb.QueryInput) request {
	switch aws.ToString(in.TableName) {
	case snapshotTable:
		return headReads
	case checkpointTable:
		for _, value := range in.ExpressionAttributeValues {
			switch sort := text(value); {
			case strings.HasPrefix(sort, positionPrefix):
				return positionReading
			case strings.HasPrefix(sort, behindPrefix):
				return listRequests
			}
		}
	}
	switch aws.ToString(in.IndexName) {
	case tailIndex:
		return tailQueries
	// A query backwards, for the last item of an aggregate in the packed layout.
	case "":
		if aws.ToString(in.TableName) == journalTable && !aws.ToBool(in.ScanIndexForward) && in.ScanIndexForward != nil {
			return headReads
		}
	}
	return ""
}

func readOf(table string, key map[string]types.AttributeValue) request {
	switch kind := writeOf(table, key); {
	case kind == positionWriting:
		return positionReading
	case table == snapshotTable:
		return headReads
	default:
		return kind
	}
}

func writeOf(table string, key map[string]types.AttributeValue) request {
	switch sort := text(key["skey"]); {
	case table != checkpointTable:
		return ""
	case sort == membershipRow:
		return membershipRequests
	case strings.HasPrefix(sort, positionPrefix):
		return positionWriting
	case strings.HasPrefix(sort, behindPrefix):
		return listRequests
	}
	return ""
}

// throttle is a time in which some requests of one kind are throttled.
type throttle struct {
	of          request
	rate        float64
	from, lasts time.Duration
}

func newThrottles(r *rand.Rand, small bool) (throttles []throttle) {
	least, most := time.Minute, 150*time.Second
	if small {
		least, most = 15*time.Second, 40*time.Second
	}
	for range 1 + r.IntN(3) {
		throttles = append(throttles, throttle{
			of: draw.Pick(r, requests...), rate: 0.2 + 0.3*r.Float64(), from: draw.UpTo(r, 5*time.Second), lasts: between(r, least, most),
		})
	}
	return throttles
}

// happen throttles until its time is over or ctx ends.
func (t throttle) happen(ctx context.Context, w *world, r *rand.Rand) {
	pauseFor(ctx, t.from)
	w.oracle.note("throttle "+string(t.of), "database")
	fault := w.database.Inject(dynamotest.Throttle(), dynamotest.Matching(func(_ string, in any) bool {
		return requestOf(in) == t.of && r.Float64() < t.rate
	}))
	pauseFor(ctx, t.lasts)
	fault.Remove()
	w.oracle.count("throttled "+string(t.of), fault.Fired())
	w.oracle.note("throttle no "+string(t.of), "database")
}
