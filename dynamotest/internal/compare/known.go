package compare

import (
	"errors"
	"math/big"
	"regexp"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	grammar "github.com/millrace-dev/millrace/dynamotest/internal/expression"
)

// Known is a difference that is caused by DynamoDB Local.
type Known struct {
	Name string

	// Reference is the AWS documentation of DynamoDB's behaviour.
	Reference string

	// Is reports whether a difference is exactly this one. Left is DynamoDB Local.
	Is func(d Difference) bool

	// IsPlace reports the same for one place of two replies without errors, if a reply differs from
	// the stored value. One reply may have several such differences.
	IsPlace func(d Difference, p Place) bool
}

const (
	guide = "https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/"
	api   = "https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/"
)

// known lists the differences that are not faults of dynamotest.
var known = []Known{
	{
		Name:      "an internal failure",
		Reference: guide + "Programming.Errors.html: a 5xx status is a problem of the service, not an answer to the request",
		Is:        func(d Difference) bool { return d.Left.Code() == "InternalFailure" },
	},
	{
		Name: "numbers as they were written",
		Reference: guide + "HowItWorks.NamingRulesDataTypes.html#HowItWorks.DataTypes.Number: " +
			"leading and trailing zeroes are trimmed",
		IsPlace: func(_ Difference, p Place) bool { return sameNumbers(p) },
	},
	{
		Name: "an update of a transaction that the item does not allow does not cancel it",
		Reference: api + "API_TransactWriteItems.html: a ValidationError is one of the CancellationReasons, " +
			"for a document path, an operand or an attribute that does not fit the item",
		Is: func(d Difference) bool {
			var canceled *types.TransactionCanceledException
			return d.Left.Code() == "ValidationException" && updateErrors.MatchString(d.Left.Message()) &&
				errors.As(d.Right.Err, &canceled) && slices.ContainsFunc(canceled.CancellationReasons, func(reason types.CancellationReason) bool {
				return reason.Code != nil && *reason.Code == "ValidationError"
			})
		},
	},
	{
		Name:      "no item collection metrics",
		Reference: api + "API_PutItem.html: ItemCollectionMetrics are returned if they were asked for and the table has a local secondary index",
		IsPlace:   func(_ Difference, p Place) bool { return p.Path == "reply.ItemCollectionMetrics" && p.Left == "null" },
	},
	{
		Name:      "throughput for a table that is billed on demand",
		Reference: api + "API_CreateTable.html: if BillingMode is PAY_PER_REQUEST, ProvisionedThroughput is a ValidationException",
		Is: func(d Difference) bool {
			in, ok := d.Operation.Input.(*dynamodb.CreateTableInput)
			return ok && in.BillingMode == types.BillingModePayPerRequest && in.ProvisionedThroughput != nil &&
				slices.Contains([]string{"", "ResourceInUseException"}, d.Left.Code()) && d.Right.Code() == "ValidationException"
		},
	},
	{
		Name:      "one reason for all actions where one is a ValidationError",
		Reference: api + "API_TransactWriteItems.html: CancellationReasons are in the order of the items, with None for those without",
		Is: func(d Difference) bool {
			var left, right *types.TransactionCanceledException
			if !errors.As(d.Left.Err, &left) || !errors.As(d.Right.Err, &right) {
				return false
			}
			l, r := left.CancellationReasons, right.CancellationReasons
			return len(l) == 1 && len(r) > 1 && isValidationError(l[0]) && slices.ContainsFunc(r, isValidationError)
		},
	},
	{
		Name:      "no reasons for a transaction of reads that is cancelled for a key",
		Reference: api + "API_TransactGetItems.html: a TransactionCanceledException has CancellationReasons",
		Is: func(d Difference) bool {
			var left, right *types.TransactionCanceledException
			return d.Operation.Name() == "TransactGetItems" && errors.As(d.Left.Err, &left) && errors.As(d.Right.Err, &right) &&
				len(left.CancellationReasons) == 0 && slices.ContainsFunc(right.CancellationReasons, isValidationError)
		},
	},
	{
		Name:      "the name of a table that a transaction reads is not checked",
		Reference: api + "API_Get.html: TableName has at least 3 characters of a pattern",
		Is: func(d Difference) bool {
			return d.Operation.Name() == "TransactGetItems" && d.Left.Code() == "ResourceNotFoundException" &&
				d.Right.Code() == "ValidationException" && tableNameErrors.MatchString(d.Right.Message())
		},
	},
	{
		Name:      "which of the mistakes in several actions of a transaction is reported",
		Reference: api + "API_TransactWriteItems.html: the errors have no order; two actions must not be on one item",
		Is: func(d Difference) bool {
			in, ok := d.Operation.Input.(*dynamodb.TransactWriteItemsInput)
			return ok && len(in.TransactItems) > 1 &&
				slices.Contains([]string{"TransactionCanceledException", "ValidationException"}, d.Left.Code()) &&
				slices.Contains([]string{"ResourceNotFoundException", "ValidationException"}, d.Right.Code())
		},
	},
	{
		Name: "an update sets the key of an index to a value that is too long",
		Reference: api + "API_TransactWriteItems.html: \"The update expression attempted to update the secondary index key beyond " +
			"allowed size limits\" is a ValidationError",
		Is: func(d Difference) bool {
			if d.Left.Err != nil {
				return false
			}
			var canceled *types.TransactionCanceledException
			if errors.As(d.Right.Err, &canceled) {
				return slices.ContainsFunc(canceled.CancellationReasons, func(reason types.CancellationReason) bool {
					return tooLong.MatchString(aws.ToString(reason.Message))
				})
			}
			return d.Operation.Name() == "UpdateItem" && tooLong.MatchString(d.Right.Message())
		},
	},
	{
		Name: "an update makes an item too large together with what local indexes keep of it",
		Reference: guide + "ServiceQuotas.html#limits-items: with local secondary indexes 400 KB is the limit of the item and all of its " +
			"entries in them",
		Is: func(d Difference) bool {
			const tooLarge = "Item size to update has exceeded the maximum allowed size"
			if d.Left.Err != nil {
				return false
			}
			var canceled *types.TransactionCanceledException
			if errors.As(d.Right.Err, &canceled) {
				return slices.ContainsFunc(canceled.CancellationReasons, func(reason types.CancellationReason) bool {
					return aws.ToString(reason.Message) == tooLarge
				})
			}
			return d.Operation.Name() == "UpdateItem" && d.Right.Message() == tooLarge
		},
	},
	{
		Name:      "a new index whose key only the table defines",
		Reference: api + "API_UpdateTable.html: with a new global index, AttributeDefinitions must include its key elements",
		Is: func(d Difference) bool {
			return d.Operation.Name() == "UpdateTable" && d.Left.Err == nil &&
				strings.Contains(d.Right.Message(), "Some index key attributes are not defined in AttributeDefinitions")
		},
	},
	{
		Name:      "an update sets the key of an index to another type",
		Reference: api + "API_TransactWriteItems.html: \"Type mismatch for attribute to update\" is a ValidationError",
		Is: func(d Difference) bool {
			if d.Left.Err != nil || d.Right.Err == nil {
				return false
			}
			var canceled *types.TransactionCanceledException
			if errors.As(d.Right.Err, &canceled) {
				return slices.ContainsFunc(canceled.CancellationReasons, func(reason types.CancellationReason) bool {
					return isValidationError(reason) && strings.Contains(aws.ToString(reason.Message), "Type mismatch for Index Key")
				})
			}
			return d.Operation.Name() == "UpdateItem" && strings.Contains(d.Right.Message(), "Type mismatch for Index Key")
		},
	},
	{
		Name: "a scan of an index filters by an attribute that the index lacks",
		Reference: guide + "GSI.html#GSI.Projections: an index has the attributes that are projected into it, and a scan of it " +
			"reads no others; LSI.html#LSI.Projections the same",
		Is: func(d Difference) bool {
			in, ok := d.Operation.Input.(*dynamodb.ScanInput)
			return ok && d.Left.Err == nil && d.Right.Err == nil && in.IndexName != nil && in.FilterExpression != nil && filtersUnprojected(d, in)
		},
	},
	{
		Name:      "an update of a transaction that the item does not allow, where a condition is false too",
		Reference: api + "API_TransactWriteItems.html: CancellationReasons report for each item what is wrong with it",
		Is: func(d Difference) bool {
			var left, right *types.TransactionCanceledException
			if !errors.As(d.Left.Err, &left) || !errors.As(d.Right.Err, &right) {
				return false
			}
			return slices.EqualFunc(left.CancellationReasons, right.CancellationReasons, func(l, r types.CancellationReason) bool {
				return aws.ToString(l.Code) == aws.ToString(r.Code) || aws.ToString(l.Code) == "None" && isValidationError(r)
			})
		},
	},
	{
		Name:      "which of two mistakes in different tables of a batch is reported",
		Reference: api + "API_BatchWriteItem.html: RequestItems is a map, whose tables have no order",
		Is: func(d Difference) bool {
			tables := 0
			switch in := d.Operation.Input.(type) {
			case *dynamodb.BatchWriteItemInput:
				tables = len(in.RequestItems)
			case *dynamodb.BatchGetItemInput:
				tables = len(in.RequestItems)
			}
			mistakes := []string{"ResourceNotFoundException", "ValidationException"}
			return tables > 1 && slices.Contains(mistakes, d.Left.Code()) && slices.Contains(mistakes, d.Right.Code())
		},
	},
	{
		Name: "a table changes to provisioned throughput without its indexes",
		Reference: api + "API_UpdateTable.html: when switching from pay-per-request to provisioned capacity, initial provisioned " +
			"capacity values must be set",
		Is: func(d Difference) bool {
			return d.Operation.Name() == "UpdateTable" && d.Left.Err == nil &&
				strings.Contains(d.Right.Message(), "ProvisionedThroughput must be specified for index")
		},
	},
	{
		Name:      "an attribute that is defined and not used",
		Reference: api + "API_CreateTable.html: AttributeDefinitions describe the key schema for the table and indexes",
		Is: func(d Difference) bool {
			return d.Operation.Name() == "CreateTable" && d.Left.Err == nil && strings.Contains(d.Right.Message(), "Some AttributeDefinitions are not used")
		},
	},
	{
		Name: "the whole attribute for an update of a part of it",
		Reference: api + "API_UpdateItem.html: UPDATED_OLD and UPDATED_NEW return only what was updated; the service leaves out the " +
			"rest of a map or list",
		IsPlace: func(d Difference, p Place) bool {
			in, ok := d.Operation.Input.(*dynamodb.UpdateItemInput)
			return ok && (in.ReturnValues == types.ReturnValueUpdatedNew || in.ReturnValues == types.ReturnValueUpdatedOld) &&
				strings.HasPrefix(p.Path, "reply.Attributes") && strings.ContainsAny(aws.ToString(in.UpdateExpression), ".[")
		},
	},
	{
		Name:      "throughput of an index after its table changed to on-demand billing",
		Reference: api + "API_ProvisionedThroughputDescription.html: with PAY_PER_REQUEST the units are 0",
		IsPlace: func(d Difference, p Place) bool {
			return strings.Contains(p.Path, ".ProvisionedThroughput.") && p.Right == "0"
		},
	},
	{
		Name:      "conditions and later mistakes beside a key that does not fit an index",
		Reference: api + "API_TransactWriteItems.html: a ValidationError; the keys of all actions are checked before any condition",
		Is: func(d Difference) bool {
			var left, right *types.TransactionCanceledException
			if !errors.As(d.Left.Err, &left) || !errors.As(d.Right.Err, &right) {
				return false
			}
			r := right.CancellationReasons
			first := slices.IndexFunc(left.CancellationReasons, isValidationError)
			return first >= 0 && first == slices.IndexFunc(r, isValidationError) &&
				!slices.ContainsFunc(slices.Delete(slices.Clone(r), first, first+1), func(other types.CancellationReason) bool {
					return aws.ToString(other.Code) != "None"
				})
		},
	},
	{
		Name:      "a start key for a query without sort key",
		Reference: api + "API_Query.html: the key of the first item that the operation evaluates; nothing follows the only item",
		Is: func(d Difference) bool {
			return d.Operation.Name() == "Query" && d.Left.Err == nil &&
				strings.HasPrefix(d.Right.Message(), "The provided exclusive start key is invalid")
		},
	},
	{
		Name:      "the reserved word SIZE",
		Reference: guide + "ReservedWords.html: no expression may name an attribute by a reserved word",
		Is: func(d Difference) bool {
			return d.Right.Code() == "ValidationException" &&
				strings.HasSuffix(d.Right.Message(), "Attribute name is a reserved keyword; reserved keyword: size")
		},
	},
}

func isValidationError(reason types.CancellationReason) bool {
	return aws.ToString(reason.Code) == "ValidationError"
}

// tooLong matches the errors for a key that exceeds its limit.
var tooLong = regexp.MustCompile(`Size of hashkey has exceeded|Aggregated size of all range keys has exceeded`)

// tableNameErrors matches the errors for a wrong table name.
var tableNameErrors = regexp.MustCompile(`^TableName must be at least 3 characters long|at 'tableName' failed to satisfy constraint`)

// filtersUnprojected reports whether a scan of an index filters by an attribute that the index does
// not contain.
func filtersUnprojected(d Difference, in *dynamodb.ScanInput) bool {
	a := grammar.NewAttributes(in.ExpressionAttributeNames, in.ExpressionAttributeValues)
	filter, err := grammar.ParseCondition("FilterExpression", *in.FilterExpression, a)
	if err != nil {
		return false
	}
	kept := keptBy(d, *in.TableName, *in.IndexName)
	return kept != nil && slices.ContainsFunc(filter.Attributes(), func(name string) bool { return !slices.Contains(kept, name) })
}

// keptBy returns the attributes that an index contains, and nil if it contains all.
func keptBy(d Difference, tableName, indexName string) []string {
	var kept []string
	keep := func(schema []types.KeySchemaElement, projection *types.Projection) {
		for _, element := range schema {
			kept = append(kept, *element.AttributeName)
		}
		if projection != nil {
			kept = append(kept, projection.NonKeyAttributes...)
		}
	}
	for _, operation := range d.World.Operations[:d.Step] {
		switch in := operation.Input.(type) {
		case *dynamodb.CreateTableInput:
			if *in.TableName != tableName {
				continue
			}
			for _, ix := range in.GlobalSecondaryIndexes {
				if aws.ToString(ix.IndexName) == indexName && ix.Projection.ProjectionType != types.ProjectionTypeAll {
					keep(append(slices.Clone(in.KeySchema), ix.KeySchema...), ix.Projection)
				}
			}
			for _, ix := range in.LocalSecondaryIndexes {
				if aws.ToString(ix.IndexName) == indexName && ix.Projection.ProjectionType != types.ProjectionTypeAll {
					keep(append(slices.Clone(in.KeySchema), ix.KeySchema...), ix.Projection)
				}
			}
		case *dynamodb.UpdateTableInput:
			for _, change := range in.GlobalSecondaryIndexUpdates {
				if c := change.Create; c != nil && *in.TableName == tableName && aws.ToString(c.IndexName) == indexName &&
					c.Projection.ProjectionType != types.ProjectionTypeAll {
					keep(c.KeySchema, c.Projection)
				}
			}
		}
	}
	return kept
}

// updateErrors matches the errors of an update that depend on the stored item.
var updateErrors = regexp.MustCompile(`^The document path provided in the update expression is invalid for update$|` +
	`^An operand in the update expression has an incorrect data type$|` +
	`^The provided expression refers to an attribute that does not exist in the item$|` +
	`^DynamoDB only supports precision up to 38 digits$|^Number overflow|^Number underflow|` +
	`^Invalid attribute value type$|` +
	`^One or more parameter values are not valid. The update expression attempted to update a secondary index key`)

// explained returns the known difference that equals d.
func explained(d Difference) (Known, bool) {
	for _, k := range known {
		if k.Is != nil && k.Is(d) {
			return k, true
		}
	}
	var found Known
	for _, p := range d.Where {
		i := slices.IndexFunc(known, func(k Known) bool { return k.IsPlace != nil && k.IsPlace(d, p) })
		if i < 0 {
			return Known{}, false
		}
		found = known[i]
	}
	return found, true
}

var (
	tokens = regexp.MustCompile(`"(?:[^"\\]|\\.)*"|[^\s"()\[\]{}]+|.`)
	plain  = regexp.MustCompile(`^(0|-?([1-9]\d*|0)(\.\d*[1-9])?)$`)
)

// sameNumbers reports whether two texts of a value differ only in the notation of numbers, and the
// right one has DynamoDB's notation.
func sameNumbers(p Place) bool {
	left, right := tokens.FindAllString(p.Left, -1), tokens.FindAllString(p.Right, -1)
	if len(left) != len(right) {
		return false
	}
	for i, l := range left {
		l, r := number(l), number(right[i])
		if l == r {
			continue
		}
		x, ok := new(big.Rat).SetString(l)
		y, also := new(big.Rat).SetString(r)
		if !ok || !also || x.Cmp(y) != 0 || !plain.MatchString(r) {
			return false
		}
	}
	return true
}

// number returns a token without the mark of a number, which may follow the name of an attribute.
func number(token string) string {
	return strings.TrimPrefix(strings.TrimPrefix(token, ":"), "N:")
}
