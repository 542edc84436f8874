package engine

import (
	"fmt"
	"slices"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
)

// maxListed is the largest and the default number of tables on a page. Source: API Reference,
// ListTables.
const maxListed = 100

// ListTables lists the tables by name.
func (db *Database) ListTables(in *dynamodb.ListTablesInput) (*dynamodb.ListTablesOutput, error) {
	if err := checkListTables(in); err != nil {
		return nil, err
	}
	names := db.tableNames()
	if in.ExclusiveStartTableName != nil {
		after, found := slices.BinarySearch(names, *in.ExclusiveStartTableName)
		if found {
			after++
		}
		names = names[after:]
	}
	out := &dynamodb.ListTablesOutput{TableNames: names}
	limit := maxListed
	if in.Limit != nil {
		limit = int(*in.Limit)
	}
	if len(names) > limit {
		out.TableNames = names[:limit]
		out.LastEvaluatedTableName = aws.String(names[limit-1])
	}
	return out, nil
}

func checkListTables(in *dynamodb.ListTablesInput) error {
	var c constraints
	if in.ExclusiveStartTableName != nil {
		c.name("exclusiveStartTableName", in.ExclusiveStartTableName)
	}
	if in.Limit != nil && *in.Limit < 1 {
		c.refuse("limit", fmt.Sprintf("'%d'", *in.Limit), "have value greater than or equal to 1")
	}
	if in.Limit != nil && *in.Limit > maxListed {
		c.refuse("limit", fmt.Sprintf("'%d'", *in.Limit), fmt.Sprintf("have value less than or equal to %d", maxListed))
	}
	return c.err()
}
