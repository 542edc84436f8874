package compare

import (
	"context"
	"fmt"
	"reflect"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
)

// Operation is one call. A Query or Scan is continued to its end with the LastEvaluatedKey of its
// own side. A Scan of segments is made for each segment.
type Operation struct {
	Input any // for example *dynamodb.PutItemInput

	// Sort is the sort key of the queried index.
	Sort string

	// Segments is the number of segments to scan, or 0 to scan as Input says.
	Segments int
}

// Name returns the operation's name in the API.
func (o Operation) Name() string {
	return strings.TrimSuffix(reflect.TypeOf(o.Input).Elem().Name(), "Input")
}

// String returns the operation as text similar to JSON.
func (o Operation) String() string {
	text := o.Name() + " " + textOf(o.Input)
	if o.Segments > 0 {
		text += fmt.Sprintf(" in %d segments", o.Segments)
	}
	return text
}

// Reply is the reply of one side: one output, or the pages of a Query or Scan.
type Reply struct {
	Outputs []any
	Err     error
}

// maxPages is more than any sequence of operations makes.
const maxPages = 500

// call makes the operation. The sides remember the tokens of transactions for minutes, so the
// tokens have a different prefix in each run.
func (o Operation) call(ctx context.Context, client *dynamodb.Client, tokenPrefix string) Reply {
	switch in := o.Input.(type) {
	case *dynamodb.CreateTableInput:
		return reply(client.CreateTable(ctx, in))
	case *dynamodb.DescribeTableInput:
		return reply(client.DescribeTable(ctx, in))
	case *dynamodb.UpdateTableInput:
		return reply(client.UpdateTable(ctx, in))
	case *dynamodb.DeleteTableInput:
		return reply(client.DeleteTable(ctx, in))
	case *dynamodb.ListTablesInput:
		return reply(client.ListTables(ctx, in))
	case *dynamodb.UpdateTimeToLiveInput:
		return reply(client.UpdateTimeToLive(ctx, in))
	case *dynamodb.DescribeTimeToLiveInput:
		return reply(client.DescribeTimeToLive(ctx, in))
	case *dynamodb.PutItemInput:
		return reply(client.PutItem(ctx, in))
	case *dynamodb.GetItemInput:
		return reply(client.GetItem(ctx, in))
	case *dynamodb.UpdateItemInput:
		return reply(client.UpdateItem(ctx, in))
	case *dynamodb.DeleteItemInput:
		return reply(client.DeleteItem(ctx, in))
	case *dynamodb.BatchGetItemInput:
		return reply(client.BatchGetItem(ctx, in))
	case *dynamodb.BatchWriteItemInput:
		return reply(client.BatchWriteItem(ctx, in))
	case *dynamodb.TransactGetItemsInput:
		return reply(client.TransactGetItems(ctx, in))
	case *dynamodb.TransactWriteItemsInput:
		// A copy: the SDK writes a token into it if there is none.
		own := *in
		if token := aws.ToString(in.ClientRequestToken); token != "" {
			own.ClientRequestToken = aws.String(tokenPrefix + token)
		}
		return reply(client.TransactWriteItems(ctx, &own))
	case *dynamodb.QueryInput:
		return o.query(ctx, client, *in)
	case *dynamodb.ScanInput:
		return o.scan(ctx, client, *in)
	}
	return Reply{Err: fmt.Errorf("no call for %s", o.Name())}
}

func reply(out any, err error) Reply {
	if err != nil {
		return Reply{Err: err}
	}
	return Reply{Outputs: []any{out}}
}

func (o Operation) query(ctx context.Context, client *dynamodb.Client, in dynamodb.QueryInput) (r Reply) {
	for range maxPages {
		out, err := client.Query(ctx, &in)
		if err != nil {
			r.Err = err
			return r
		}
		r.Outputs = append(r.Outputs, out)
		if in.ExclusiveStartKey = out.LastEvaluatedKey; len(out.LastEvaluatedKey) == 0 {
			return r
		}
	}
	r.Err = fmt.Errorf("the query has not ended after %d pages", maxPages)
	return r
}

func (o Operation) scan(ctx context.Context, client *dynamodb.Client, in dynamodb.ScanInput) (r Reply) {
	for segment := range max(1, o.Segments) {
		if o.Segments > 0 {
			in.Segment, in.TotalSegments = aws.Int32(int32(segment)), aws.Int32(int32(o.Segments))
			in.ExclusiveStartKey = nil
		}
		for range maxPages {
			out, err := client.Scan(ctx, &in)
			if err != nil {
				r.Err = err
				return r
			}
			r.Outputs = append(r.Outputs, out)
			if in.ExclusiveStartKey = out.LastEvaluatedKey; len(out.LastEvaluatedKey) == 0 {
				break
			}
		}
		if len(in.ExclusiveStartKey) != 0 {
			r.Err = fmt.Errorf("the scan has not ended after %d pages", maxPages)
			return r
		}
	}
	return r
}

// changesTables reports whether the operation changes tables, so that an index may have to be
// built.
func (o Operation) changesTables() bool {
	switch o.Input.(type) {
	case *dynamodb.CreateTableInput, *dynamodb.UpdateTableInput, *dynamodb.DeleteTableInput, *dynamodb.UpdateTimeToLiveInput:
		return true
	}
	return false
}

// touched is a key that an operation writes.
type touched struct {
	table string
	key   item // or the item that contains the key
}

// writes returns the keys that an operation may write.
func (o Operation) writes() []touched {
	var out []touched
	add := func(table *string, key item) { out = append(out, touched{aws.ToString(table), key}) }
	switch in := o.Input.(type) {
	case *dynamodb.PutItemInput:
		add(in.TableName, in.Item)
	case *dynamodb.UpdateItemInput:
		add(in.TableName, in.Key)
	case *dynamodb.DeleteItemInput:
		add(in.TableName, in.Key)
	case *dynamodb.BatchWriteItemInput:
		for name, requests := range in.RequestItems {
			for _, r := range requests {
				if r.PutRequest != nil {
					add(&name, r.PutRequest.Item)
				}
				if r.DeleteRequest != nil {
					add(&name, r.DeleteRequest.Key)
				}
			}
		}
	case *dynamodb.TransactWriteItemsInput:
		for _, a := range in.TransactItems {
			switch {
			case a.Put != nil:
				add(a.Put.TableName, a.Put.Item)
			case a.Update != nil:
				add(a.Update.TableName, a.Update.Key)
			case a.Delete != nil:
				add(a.Delete.TableName, a.Delete.Key)
			}
		}
	}
	return out
}

// expressions returns the expressions of the operation, for the coverage.
func (o Operation) expressions() []string {
	var out []string
	var walk func(v reflect.Value)
	walk = func(v reflect.Value) {
		switch v.Kind() {
		case reflect.Pointer:
			if !v.IsNil() {
				walk(v.Elem())
			}
		case reflect.Slice:
			for i := range v.Len() {
				walk(v.Index(i))
			}
		case reflect.Map:
			for _, key := range v.MapKeys() {
				walk(v.MapIndex(key))
			}
		case reflect.Struct:
			for i := range v.NumField() {
				field := v.Type().Field(i)
				if !field.IsExported() {
					continue
				}
				if text, ok := v.Field(i).Interface().(*string); !ok {
					walk(v.Field(i))
				} else if text != nil && strings.HasSuffix(field.Name, "Expression") {
					out = append(out, *text)
				}
			}
		}
	}
	walk(reflect.ValueOf(o.Input))
	return out
}
