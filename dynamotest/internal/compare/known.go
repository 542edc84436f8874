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
)

// Known is a difference that is DynamoDB Local's own fault.
type Known struct {
	Name string

	// Reference is the AWS documentation that says what DynamoDB does.
	Reference string

	// Is tells whether a difference is this one, and no more than this one. Left is DynamoDB Local.
	Is func(d Difference) bool

	// IsPlace tells it of one place of two replies without errors, for what is replied otherwise than it is
	// stored. There may be several such differences in one reply.
	IsPlace func(p Place) bool
}

const (
	guide = "https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/"
	api   = "https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/"
)

// known are the differences that are not held against dynamotest.
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
		IsPlace: sameNumbers,
	},
	{
		Name: "an update of a transaction that the item does not allow is no reason to cancel",
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
		IsPlace:   func(p Place) bool { return p.Path == "reply.ItemCollectionMetrics" && p.Left == "null" },
	},
	{
		Name:      "throughput for a table that is paid per request",
		Reference: api + "API_CreateTable.html: if BillingMode is PAY_PER_REQUEST, ProvisionedThroughput is a ValidationException",
		Is: func(d Difference) bool {
			in, ok := d.Operation.Input.(*dynamodb.CreateTableInput)
			return ok && in.BillingMode == types.BillingModePayPerRequest && in.ProvisionedThroughput != nil &&
				d.Left.Err == nil && d.Right.Code() == "ValidationException"
		},
	},
	{
		Name:      "no reasons after the first that is a ValidationError",
		Reference: api + "API_TransactWriteItems.html: CancellationReasons are in the order of the items, with None for those without",
		Is: func(d Difference) bool {
			var left, right *types.TransactionCanceledException
			if !errors.As(d.Left.Err, &left) || !errors.As(d.Right.Err, &right) {
				return false
			}
			l, r := left.CancellationReasons, right.CancellationReasons
			return len(l) > 0 && len(l) < len(r) && aws.ToString(l[len(l)-1].Code) == "ValidationError" &&
				slices.EqualFunc(l, r[:len(l)], func(a, b types.CancellationReason) bool {
					return aws.ToString(a.Code) == aws.ToString(b.Code)
				})
		},
	},
	{
		Name:      "a reserved word in the update of a transaction",
		Reference: guide + "ReservedWords.html: no expression may name an attribute by a reserved word",
		Is: func(d Difference) bool {
			return d.Operation.Name() == "TransactWriteItems" && d.Left.Err == nil && d.Right.Code() == "ValidationException" &&
				strings.Contains(d.Right.Message(), "Attribute name is a reserved keyword")
		},
	},
}

// updateErrors are what is wrong with an update only once its item is known.
var updateErrors = regexp.MustCompile(`^The document path provided in the update expression is invalid for update$|` +
	`^An operand in the update expression has an incorrect data type$|` +
	`^The provided expression refers to an attribute that does not exist in the item$`)

// explained returns the known difference that d is.
func explained(d Difference) (Known, bool) {
	for _, k := range known {
		if k.Is != nil && k.Is(d) {
			return k, true
		}
	}
	var found Known
	for _, p := range d.Where {
		i := slices.IndexFunc(known, func(k Known) bool { return k.IsPlace != nil && k.IsPlace(p) })
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

// sameNumbers is true of two texts of a value that only differ in how numbers are written, if the right has
// them as DynamoDB writes them.
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

// number is a token without what marks it as a number, be it after the name of an attribute or not.
func number(token string) string {
	return strings.TrimPrefix(strings.TrimPrefix(token, ":"), "N:")
}
