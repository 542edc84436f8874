package awsproof

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"

	awsmiddleware "github.com/aws/aws-sdk-go-v2/aws/middleware"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/smithy-go/middleware"

	"github.com/millrace-dev/millrace/internal/dynamo"
	"github.com/millrace-dev/millrace/internal/permissions"
	"github.com/millrace-dev/millrace/internal/units"
)

// Prices of us-east-1, in dollars. Other regions cost up to twice as much.
const (
	writePrice  = 0.625 / 1e6
	readPrice   = 0.125 / 1e6
	otherRegion = 2.0
)

// presumedUnits are counted for each item of a write that failed. A false condition consumes write
// units, and so may a write whose reply was lost, but no reply contains them.
const presumedUnits = 4

// ErrBudget reports that the budget is consumed.
var ErrBudget = errors.New("the budget is consumed")

// amount is what requests consumed, in capacity units.
type amount struct{ Read, Write, Presumed float64 }

func (a amount) minus(b amount) amount {
	return amount{a.Read - b.Read, a.Write - b.Write, a.Presumed - b.Presumed}
}

func (a amount) dollars(region string) float64 {
	dollars := a.Read*readPrice + (a.Write+a.Presumed)*writePrice
	if !strings.HasPrefix(region, "us-east-") && region != "us-west-2" {
		dollars *= otherRegion
	}
	return dollars
}

// meter counts what the requests of its clients consume, each attempt of the SDK separately. When
// that costs the budget, further requests fail with [ErrBudget]. Requests on tables of others fail.
type meter struct {
	region, prefix string
	budget         float64
	spent          func() // called for each request after the budget is consumed

	mu       sync.Mutex
	consumed amount
	skews    []skew
}

// skew is the difference between the Date header of a reply and the local clock.
type skew struct {
	at time.Time
	by time.Duration
}

// client returns a client whose requests are counted.
func (m *meter) client(of *dynamodb.Client) *dynamodb.Client {
	return dynamodb.New(of.Options(), func(o *dynamodb.Options) {
		o.APIOptions = append(slices.Clone(o.APIOptions), func(stack *middleware.Stack) error {
			return errors.Join(
				stack.Initialize.Add(middleware.InitializeMiddlewareFunc("ProofLimits", m.limit), middleware.Before),
				stack.Finalize.Insert(middleware.FinalizeMiddlewareFunc("ProofMeter", m.attempt), "Retry", middleware.After),
			)
		})
	})
}

// itemsKey is the key of the number of items that a request writes.
type itemsKey struct{}

func (m *meter) limit(ctx context.Context, in middleware.InitializeInput, next middleware.InitializeHandler) (
	middleware.InitializeOutput, middleware.Metadata, error,
) {
	uses, _ := permissions.Uses(in.Parameters)
	// Operations on tables, which package permissions does not know.
	for _, field := range []string{"TableName", "TargetTableName"} {
		if name := reflect.ValueOf(in.Parameters).Elem().FieldByName(field); name.IsValid() && len(uses) == 0 {
			uses = []permissions.Use{{Table: *name.Interface().(*string)}}
		}
	}
	writes := 0
	for _, use := range uses {
		if !strings.HasPrefix(use.Table, m.prefix+"-") {
			return middleware.InitializeOutput{}, middleware.Metadata{}, fmt.Errorf("%s is not a table of this run", use.Table)
		}
		if slices.Contains([]string{"PutItem", "UpdateItem", "DeleteItem", "BatchWriteItem", "ConditionCheckItem"}, use.Action) {
			writes++
		}
	}
	if m.total().dollars(m.region) >= m.budget {
		m.spent()
		return middleware.InitializeOutput{}, middleware.Metadata{}, ErrBudget
	}
	in.Parameters = asking(in.Parameters)
	return next.HandleInitialize(middleware.WithStackValue(ctx, itemsKey{}, writes), in)
}

// asking returns a copy of an input that also asks for the consumed capacity, if it can.
func asking(in any) any {
	asks := reflect.New(reflect.TypeOf(in).Elem())
	asks.Elem().Set(reflect.ValueOf(in).Elem())
	if asked := asks.Elem().FieldByName("ReturnConsumedCapacity"); asked.IsValid() && asked.String() == "" {
		asked.SetString("TOTAL")
	}
	return asks.Interface()
}

func (m *meter) attempt(ctx context.Context, in middleware.FinalizeInput, next middleware.FinalizeHandler) (
	out middleware.FinalizeOutput, metadata middleware.Metadata, err error,
) {
	out, metadata, err = next.HandleFinalize(ctx, in)
	var a amount
	writes, _ := middleware.GetStackValue(ctx, itemsKey{}).(int)
	switch {
	case err == nil:
		a.Read, a.Write = units.Consumed(out.Result)
	case !dynamo.IsThrottle(err) && !slices.Contains([]string{"ValidationException", "AccessDeniedException", "ResourceNotFoundException"}, dynamo.Code(err)):
		a.Presumed = float64(writes) * presumedUnits
	}
	m.add(a)
	if server, ok := awsmiddleware.GetServerTime(metadata); ok {
		if at, ok := awsmiddleware.GetResponseAt(metadata); ok {
			m.mu.Lock()
			m.skews = append(m.skews, skew{at, server.Sub(at)})
			m.mu.Unlock()
		}
	}
	return out, metadata, err
}

func (m *meter) add(a amount) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.consumed.Read += a.Read
	m.consumed.Write += a.Write
	m.consumed.Presumed += a.Presumed
}

func (m *meter) total() amount {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.consumed
}
