package permissions

import "github.com/aws/aws-sdk-go-v2/service/dynamodb"

// Use is an action on a table, or on one of its indexes.
type Use struct{ Table, Index, Action string }

// Uses returns the permissions that IAM asks for before DynamoDB applies a request. For a batch or
// a transaction they are those of each part. It returns false for a request that it does not know.
func Uses(request any) (uses []Use, known bool) {
	use := func(table, index *string, action string) {
		u := Use{Table: *table, Action: action}
		if index != nil {
			u.Index = *index
		}
		uses = append(uses, u)
	}
	switch in := request.(type) {
	case *dynamodb.GetItemInput:
		use(in.TableName, nil, "GetItem")
	case *dynamodb.QueryInput:
		use(in.TableName, in.IndexName, "Query")
	case *dynamodb.ScanInput:
		use(in.TableName, in.IndexName, "Scan")
	case *dynamodb.PutItemInput:
		use(in.TableName, nil, "PutItem")
	case *dynamodb.UpdateItemInput:
		use(in.TableName, nil, "UpdateItem")
	case *dynamodb.DeleteItemInput:
		use(in.TableName, nil, "DeleteItem")
	case *dynamodb.BatchWriteItemInput:
		for table := range in.RequestItems {
			use(&table, nil, "BatchWriteItem")
		}
	case *dynamodb.BatchGetItemInput:
		for table := range in.RequestItems {
			use(&table, nil, "BatchGetItem")
		}
	case *dynamodb.TransactGetItemsInput:
		for _, get := range in.TransactItems {
			use(get.Get.TableName, nil, "GetItem")
		}
	case *dynamodb.TransactWriteItemsInput:
		for _, part := range in.TransactItems {
			switch {
			case part.Put != nil:
				use(part.Put.TableName, nil, "PutItem")
			case part.Update != nil:
				use(part.Update.TableName, nil, "UpdateItem")
			case part.Delete != nil:
				use(part.Delete.TableName, nil, "DeleteItem")
			case part.ConditionCheck != nil:
				use(part.ConditionCheck.TableName, nil, "ConditionCheckItem")
			}
		}
	case *dynamodb.CreateTableInput:
		use(in.TableName, nil, "CreateTable")
	case *dynamodb.DescribeTableInput:
		use(in.TableName, nil, "DescribeTable")
	case *dynamodb.DescribeTimeToLiveInput:
		use(in.TableName, nil, "DescribeTimeToLive")
	case *dynamodb.UpdateTimeToLiveInput:
		use(in.TableName, nil, "UpdateTimeToLive")
	default:
		return nil, false
	}
	return uses, true
}
