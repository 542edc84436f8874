package engine

import (
	"reflect"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// tokenLife is how long a request token makes a repetition harmless. Source: API reference of TransactWriteItems.
const tokenLife = 10 * time.Minute

// tokens remember the transactions of the last minutes by their request tokens.
type tokens struct {
	mu      sync.Mutex
	byToken map[string]token
	oldest  []string // in the order in which they came
}

type token struct {
	at   time.Time
	in   *dynamodb.TransactWriteItemsInput
	done bool
}

// begin tells whether a transaction repeats one that was made. If not, done must be called after it with whether
// it was made.
func (ts *tokens) begin(now time.Time, in *dynamodb.TransactWriteItemsInput) (done func(made bool), repeated bool, err error) {
	if in.ClientRequestToken == nil {
		return func(bool) {}, false, nil
	}
	name := *in.ClientRequestToken
	ts.mu.Lock()
	defer ts.mu.Unlock()
	ts.forget(now)
	if known, ok := ts.byToken[name]; ok {
		switch {
		case !reflect.DeepEqual(known.in.TransactItems, in.TransactItems):
			return nil, false, &types.IdempotentParameterMismatchException{Message: aws.String(
				"The request uses the same client token as a previous, but non-identical request. " +
					"Do not reuse a client token with different requests, unless the requests are identical")}
		case !known.done:
			return nil, false, &types.TransactionInProgressException{Message: aws.String(
				"The transaction with the given request token is already in progress.")}
		}
		return func(bool) {}, true, nil
	}
	ts.byToken[name] = token{at: now, in: in}
	ts.oldest = append(ts.oldest, name)
	return func(made bool) { ts.end(name, made) }, false, nil
}

func (ts *tokens) end(name string, made bool) {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	known, ok := ts.byToken[name]
	if !ok {
		return
	}
	if !made { // it may be tried again
		delete(ts.byToken, name)
		return
	}
	known.done = true
	ts.byToken[name] = known
}

// forget drops tokens that have had their time.
func (ts *tokens) forget(now time.Time) {
	for len(ts.oldest) > 0 {
		name := ts.oldest[0]
		if known, ok := ts.byToken[name]; ok && now.Sub(known.at) < tokenLife {
			return
		}
		delete(ts.byToken, name)
		ts.oldest = ts.oldest[1:]
	}
}
