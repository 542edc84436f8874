package engine

import (
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// tokenLife is how long a transaction with the same request token counts as a repetition. Source:
// API reference of TransactWriteItems.
const tokenLife = 10 * time.Minute

// tokens remembers recent transactions by their request tokens.
type tokens struct {
	mu      sync.Mutex
	byToken map[string]*token
	made    []*token // tokens of executed transactions, in that order
}

type token struct {
	name   string
	digest uint64    // of the request
	made   time.Time // zero while it is under way
}

// begin reports whether a transaction repeats an executed one. The caller must call done
// afterwards, and say whether the transaction was executed.
func (ts *tokens) begin(now time.Time, in *dynamodb.TransactWriteItemsInput) (done func(now time.Time, made bool), repeated bool, err error) {
	if in.ClientRequestToken == nil {
		return func(time.Time, bool) {}, false, nil
	}
	one := &token{name: *in.ClientRequestToken, digest: digestOf(in.TransactItems)}
	ts.mu.Lock()
	defer ts.mu.Unlock()
	ts.forget(now)
	if known, ok := ts.byToken[one.name]; ok {
		switch {
		case known.digest != one.digest:
			return nil, false, &types.IdempotentParameterMismatchException{Message: aws.String(
				"The request uses the same client token as a previous, but non-identical request. " +
					"Do not reuse a client token with different requests, unless the requests are identical")}
		case known.made.IsZero():
			return nil, false, &types.TransactionInProgressException{Message: aws.String(
				"The transaction with the given request token is already in progress.")}
		}
		return func(time.Time, bool) {}, true, nil
	}
	ts.byToken[one.name] = one
	return func(now time.Time, made bool) { ts.end(one, now, made) }, false, nil
}

func (ts *tokens) end(one *token, now time.Time, made bool) {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	if !made { // it may be tried again
		delete(ts.byToken, one.name)
		return
	}
	one.made = now
	ts.made = append(ts.made, one)
}

// forget removes tokens that are older than tokenLife.
func (ts *tokens) forget(now time.Time) {
	for len(ts.made) > 0 && now.Sub(ts.made[0].made) >= tokenLife {
		delete(ts.byToken, ts.made[0].name)
		ts.made = ts.made[1:]
	}
}
