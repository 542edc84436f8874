package infra

import (
	"encoding/json"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/millrace-dev/millrace/internal/permissions"
	"github.com/millrace-dev/millrace/journal"
)

// Lambda is a function that works in bursts. The stream of the journal table invokes it with hints,
// and a schedule with sweeps. It has the policy of the role "application".
type Lambda struct {
	Name string
	// Topics are those whose commits invoke the function. Default: all.
	Topics []string
}

// maxPattern is the length of the longest filter pattern that Lambda accepts, in bytes.
const maxPattern = 4096

// SetLambda adds a function, and the stream to the journal table, which the document must have. It
// reports whether the filter for the topics is short enough for Lambda.
func (d *Document) SetLambda(f Lambda) bool {
	d.lambda = &f
	for _, table := range d.Tables {
		if table.Kind == permissions.Journal {
			table.Input.StreamSpecification = &types.StreamSpecification{StreamEnabled: aws.Bool(true), StreamViewType: types.StreamViewTypeKeysOnly}
			partition, _ := keys(table.Input.KeySchema)
			d.hints = newFilter(d.Access.Layout, partition, f.Topics)
		}
	}
	return len(d.hints.json()) <= maxPattern
}

// filter selects the records of the stream that can be commits. It has no condition on the sort key
// of the packed layout: numbers are text in these records, which numeric conditions do not match.
type filter struct {
	eventNames []string
	key        string   // the partition key of the table
	prefixes   []string // of the value of the key, none for all values
}

func newFilter(layout journal.Layout, key string, topics []string) filter {
	f := filter{eventNames: []string{"INSERT"}, key: key}
	if layout == journal.Packed {
		f.eventNames = append(f.eventNames, "MODIFY") // of a placeholder that a commit replaces
	}
	for _, topic := range topics {
		if layout == journal.Packed {
			f.prefixes = append(f.prefixes, strings.ReplaceAll(topic, "/", "\x1f")+"/")
		} else {
			f.prefixes = append(f.prefixes, topic+"-")
		}
	}
	return f
}

// json returns the pattern of the filter.
func (f filter) json() string {
	pattern := map[string]any{"eventName": f.eventNames}
	if len(f.prefixes) > 0 {
		var rules []map[string]string
		for _, prefix := range f.prefixes {
			rules = append(rules, map[string]string{"prefix": prefix})
		}
		pattern["dynamodb"] = map[string]any{"Keys": map[string]any{f.key: map[string]any{"S": rules}}}
	}
	text, _ := json.Marshal(pattern) // text always has a form in JSON
	return string(text)
}

// expression returns the pattern of the filter as an expression of HCL.
func (f filter) expression() string {
	object := "eventName = [" + strings.Join(allQuoted(f.eventNames), ", ") + "]"
	if len(f.prefixes) > 0 {
		var rules []string
		for _, prefix := range f.prefixes {
			rules = append(rules, "{ prefix = "+quoted(strings.ReplaceAll(prefix, "\x1f", `\u001f`))+" }")
		}
		object += ", dynamodb = { Keys = { " + f.key + " = { S = [" + strings.Join(rules, ", ") + "] } } }"
	}
	return "jsonencode({ " + object + " })"
}

// The settings of the function. The sweep of the next minute handles what a failed or slow
// invocation leaves. So Lambda drops records and scheduled events that are older than maxAge, for
// which a minute is the smallest value that Lambda accepts.
const (
	timeout        = 60 // of an invocation, in seconds
	memory         = 512
	batchSize      = 100
	batchingWindow = 1 // in seconds
	streamRetries  = 2
	maxAge         = 60 // of records and of scheduled events, in seconds
	logRetention   = 30 // in days
	concurrency    = 5

	scheduleExpression = "rate(1 minute)"
	zipText            = "Zip file with the executable file bootstrap, for arm64."
	concurrencyText    = "Reserved concurrency of the function. About one for two shards of the journal is enough. -1 reserves nothing."
)

var (
	streamActions = []string{"dynamodb:DescribeStream", "dynamodb:GetRecords", "dynamodb:GetShardIterator"}
	listActions   = []string{"dynamodb:ListStreams"} // it takes no resource
	logActions    = []string{"logs:CreateLogStream", "logs:PutLogEvents"}
)

// alarm watches a metric of the function.
type alarm struct {
	name, description            string
	namespace, metric, statistic string
	period, periods, threshold   int // the period is in seconds
	comparison, missing          string
}

// alarms are the alarms of each function. Lambda drops records that are older than maxAge, so the
// age of the stream stays below maxAge, however far the function is behind. The threshold is half
// of it.
var alarms = []alarm{
	{
		name: "sweeps", description: "No sweep has ended for 5 minutes.", namespace: "Millrace", metric: "Sweeps", statistic: "Sum",
		period: 300, periods: 1, threshold: 1, comparison: "LessThanThreshold", missing: "breaching",
	},
	{
		name: "left", description: "Sweeps have left events unhandled for 15 minutes.", namespace: "Millrace", metric: "Left", statistic: "Minimum",
		period: 900, periods: 1, threshold: 0, comparison: "GreaterThanThreshold", missing: "notBreaching",
	},
	{
		name: "errors", description: "Invocations have failed for 15 minutes.", namespace: "AWS/Lambda", metric: "Errors", statistic: "Sum",
		period: 300, periods: 3, threshold: 0, comparison: "GreaterThanThreshold", missing: "notBreaching",
	},
	{
		name: "age", description: "The stream has been 30 seconds behind for 15 minutes: most events wait for sweeps.",
		namespace: "AWS/Lambda", metric: "IteratorAge", statistic: "Maximum",
		period: 300, periods: 3, threshold: maxAge * 1000 / 2, comparison: "GreaterThanThreshold", missing: "notBreaching",
	},
}
