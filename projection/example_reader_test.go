package projection_test

import (
	"context"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/millrace-dev/millrace/dynamotest"
	"github.com/millrace-dev/millrace/projection"
)

// A table with an index lists the tasks of a user in the order of their days, in pages.
func ExampleReader() {
	ctx := context.Background()
	client := dynamotest.Open().Client() // any *dynamodb.Client
	tasks := projection.Table{Name: "tasks", PartitionKey: "id", Indexes: []projection.Index{{
		Name: "by-user", PartitionKey: "user", SortKey: "day", SortType: types.ScalarAttributeTypeN, Attributes: []string{"title", "state"},
	}}}
	check(projection.CreateTable(ctx, client, tasks))
	fill(ctx, client, tasks) // reactions of a projection do it

	type task struct{ ID, Title string }
	reader := projection.Reader[task]{Client: client, Table: tasks, Decode: func(row projection.Row) (task, error) {
		return task{row.Text("id"), row.Text("title")}, nil
	}}
	query := projection.Query{
		Index: "by-user", Partition: "anna", From: projection.Number(20), Descending: true, Limit: 2,
		Filters: []projection.Filter{projection.Where("state", "=", projection.Text("open"))},
	}
	for {
		page, err := reader.Page(ctx, query)
		check(err)
		fmt.Println(page.Rows)
		if query.Token = page.NextToken; query.Token == "" {
			break
		}
	}
	// Output:
	// [{4 write} {3 call}]
	// [{1 pay}]
}
