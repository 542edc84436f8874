// Package rebuild keeps the totals of customers, and builds them again while they are queried.
package rebuild

import (
	"context"
	"fmt"
	"log"
	"strconv"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/millrace-dev/millrace"
	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/projection"
	"github.com/millrace-dev/millrace/projection/readmodel"
	"github.com/millrace-dev/millrace/test/docs/howto/shop"
)

// Add adds the read model to an App.
func Add(ctx context.Context, app *millrace.App, client *dynamodb.Client) (*readmodel.Model, error) {
	config := readmodel.Config{Name: "totals", Topics: []string{"order"}}
	return app.ReadModel(ctx, config, func(ctx context.Context, g readmodel.Generation) ([]projection.Reaction, error) {
		table := totals(g)
		onPlaced := func(_ context.Context, e shop.Placed, _ *journal.Record) ([]projection.Write, error) {
			return add(table, e.Customer, e.Total), nil
		}
		return []projection.Reaction{projection.On(onPlaced)}, projection.CreateTable(ctx, client, table)
	})
}

// totals is the table of a generation: shop-totals_1, shop-totals_2, and so on.
func totals(g readmodel.Generation) projection.Table {
	return projection.Table{Name: g.Table("shop-totals"), PartitionKey: "customer"}
}

// Total is a query. It reads the table of the generation that serves.
func Total(ctx context.Context, client *dynamodb.Client, model *readmodel.Model, customer string) (int, error) {
	serving, err := model.Serving(ctx)
	if err != nil {
		return 0, err
	}
	table := totals(serving)
	found, err := client.GetItem(ctx, &dynamodb.GetItemInput{TableName: &table.Name, Key: table.Key(customer)})
	if err != nil {
		return 0, err
	}
	return number(found.Item["total"])
}

// Rebuild builds the read model again, and switches to it.
func Rebuild(ctx context.Context, model *readmodel.Model) error {
	next, err := model.Begin(ctx)
	if err != nil {
		return err
	}
	report := func(p readmodel.Progress) { log.Println(next, "begun:", p.Begun, "events left:", p.Left) }
	if err := model.CatchUp(ctx, next, report); err != nil {
		return err // repeat CatchUp; the generation is kept up to date meanwhile
	}
	return model.Switch(ctx, next)
}

// AddForms adds it in a release that knows two forms.
func AddForms(ctx context.Context, app *millrace.App, client *dynamodb.Client) (*readmodel.Model, error) {
	config := readmodel.Config{
		Name: "totals", Topics: []string{"order"},
		Forms: []string{"", "2"}, // what this release can build and query; the last one had none
	}
	return app.ReadModel(ctx, config, func(ctx context.Context, g readmodel.Generation) ([]projection.Reaction, error) {
		table := totals(g)
		onPlaced := func(_ context.Context, e shop.Placed, r *journal.Record) ([]projection.Write, error) {
			if g.Form == "2" { // a total for each month
				return add(table, e.Customer+" "+r.OccurredAt.UTC().Format("2006-01"), e.Total), nil
			}
			return add(table, e.Customer, e.Total), nil
		}
		return []projection.Reaction{projection.On(onPlaced)}, projection.CreateTable(ctx, client, table)
	})
}

func add(table projection.Table, key string, amount int) []projection.Write {
	return []projection.Write{projection.Update(types.Update{
		TableName: &table.Name, Key: table.Key(key), UpdateExpression: aws.String("ADD #total :by"),
		ExpressionAttributeNames:  map[string]string{"#total": "total"},
		ExpressionAttributeValues: map[string]types.AttributeValue{":by": &types.AttributeValueMemberN{Value: strconv.Itoa(amount)}},
	})}
}

func number(value types.AttributeValue) (int, error) {
	n, ok := value.(*types.AttributeValueMemberN)
	if !ok {
		return 0, fmt.Errorf("no total, but %T", value)
	}
	return strconv.Atoi(n.Value)
}
