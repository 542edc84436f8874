package engine

import (
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/millrace-dev/millrace/dynamotest/internal/apierror"
)

// indexAction is the change of a global index by UpdateTable: either create, update or delete is
// set.
type indexAction struct {
	name   string
	create *indexSpec
	update *types.UpdateGlobalSecondaryIndexAction
	delete bool
}

// actions checks the form of updates, and splits updates that contain several changes.
func (c *constraints) actions(at string, updates []types.GlobalSecondaryIndexUpdate) []indexAction {
	actions := make([]indexAction, 0, len(updates))
	for i, u := range updates {
		at := element(at, i)
		if u.Update != nil {
			c.name(at+".update.indexName", u.Update.IndexName)
			c.throughput(at+".update.provisionedThroughput", u.Update.ProvisionedThroughput)
			actions = append(actions, indexAction{name: aws.ToString(u.Update.IndexName), update: u.Update})
		}
		if u.Create != nil {
			spec := globalSpec(types.GlobalSecondaryIndex(*u.Create))
			c.index(at+".create", spec)
			actions = append(actions, indexAction{name: aws.ToString(spec.name), create: &spec})
		}
		if u.Delete != nil {
			c.name(at+".delete.indexName", u.Delete.IndexName)
			actions = append(actions, indexAction{name: aws.ToString(u.Delete.IndexName), delete: true})
		}
	}
	return actions
}

func checkActions(updates []types.GlobalSecondaryIndexUpdate, actions []indexAction) error {
	for _, u := range updates {
		if u.Update == nil && u.Create == nil && u.Delete == nil {
			return invalid("One of GlobalSecondaryIndexUpdate.Update, GlobalSecondaryIndexUpdate.Create, " +
				"GlobalSecondaryIndexUpdate.Delete must not be null")
		}
	}
	seen := make(map[string]bool, len(actions))
	for _, a := range actions {
		if seen[a.name] {
			return invalid("Only one global secondary index update per index is allowed simultaneously. Index: %s", a.name)
		}
		seen[a.name] = true
		if a.create != nil {
			if err := a.create.unsupported(); err != nil {
				return err
			}
		}
		if a.update != nil {
			if err := checkIndexUpdate(a); err != nil {
				return err
			}
		}
	}
	return nil
}

func checkIndexUpdate(a indexAction) error {
	if a.update.WarmThroughput != nil {
		return unsupported("WarmThroughput")
	}
	if a.update.ProvisionedThroughput == nil && a.update.OnDemandThroughput == nil {
		return invalid("Either ProvisionedThroughput or OnDemandThroughput must be specified for index: %s", a.name)
	}
	return nil
}

// checkOneAtATime allows only one index to be added or removed, because DynamoDB builds and removes
// indexes in the background.
func checkOneAtATime(actions []indexAction) error {
	online := 0
	for _, a := range actions {
		if a.update == nil {
			online++
		}
	}
	if online > 1 {
		return limitExceeded("Subscriber limit exceeded: Only 1 online index can be created or deleted simultaneously per table")
	}
	return nil
}

func limitExceeded(message string) error {
	return &types.LimitExceededException{Message: &message}
}

func indexMissing(name string) error {
	return apierror.Validation("The table does not have the specified index: %s", name)
}
