package command_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/hashicorp/hcl/v2/hclwrite"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/zclconf/go-cty/cty/function"
	"github.com/zclconf/go-cty/cty/function/stdlib"
	ctyjson "github.com/zclconf/go-cty/cty/json"

	"github.com/millrace-dev/millrace"
	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/cmd/millrace/internal/command"
	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/process"
	"github.com/millrace-dev/millrace/repository"
	"github.com/millrace-dev/millrace/subscriber"
)

func lambda(t *testing.T, format, layout string, flags ...string) string {
	t.Helper()
	return setup(t).ok(t, append([]string{"schema", "--format", format, "--layout", layout, "--prefix", "shop-", "--lambda", "shop"}, flags...)...)
}

// resource is a resource of a document, by the names of CloudFormation: its properties that are
// literals, and the pattern of its filter.
type resource map[string]any

// resourcesOf holds the function that returns the resources of a document, by its format.
var resourcesOf = map[string]func(*testing.T, string) map[string]resource{"terraform": tfResources, "cloudformation": cfnResources}

func TestAFunctionAndItsEventsAreThoseOfTheDocumentation(t *testing.T) {
	t.Parallel()
	alarm := func(name, namespace, metric, statistic, comparison, missing string, period, periods, threshold float64) resource {
		return resource{
			"AlarmName": name, "Namespace": namespace, "MetricName": metric, "Statistic": statistic, "ComparisonOperator": comparison, "TreatMissingData": missing,
			"Period": period, "EvaluationPeriods": periods, "Threshold": threshold,
		}
	}
	want := map[string]resource{
		"AWS::Logs::LogGroup": {"RetentionInDays": 30.0},
		"AWS::Lambda::Function": {
			"FunctionName": "shop", "Runtime": "provided.al2023", "Architectures": []any{"arm64"}, "Handler": "bootstrap", "Timeout": 60.0, "MemorySize": 512.0,
		},
		"AWS::Lambda::EventSourceMapping": {
			"StartingPosition": "LATEST", "BatchSize": 100.0, "MaximumBatchingWindowInSeconds": 1.0, "MaximumRetryAttempts": 2.0,
			"MaximumRecordAgeInSeconds": 60.0, "ParallelizationFactor": 1.0, "BisectBatchOnFunctionError": false, "Pattern": `{"eventName":["INSERT","MODIFY"]}`,
		},
		"AWS::Events::Rule":              {"ScheduleExpression": "rate(1 minute)"},
		"AWS::Lambda::Permission":        {"Action": "lambda:InvokeFunction", "Principal": "events.amazonaws.com"},
		"AWS::Lambda::EventInvokeConfig": {"MaximumEventAgeInSeconds": 60.0, "MaximumRetryAttempts": 0.0},
		"Sweeps":                         alarm("shop-sweeps", "Millrace", "Sweeps", "Sum", "LessThanThreshold", "breaching", 300, 1, 1),
		"Left":                           alarm("shop-left", "Millrace", "Left", "Minimum", "GreaterThanThreshold", "notBreaching", 900, 1, 0),
		"Errors":                         alarm("shop-errors", "AWS/Lambda", "Errors", "Sum", "GreaterThanThreshold", "notBreaching", 300, 3, 0),
		"IteratorAge":                    alarm("shop-age", "AWS/Lambda", "IteratorAge", "Maximum", "GreaterThanThreshold", "notBreaching", 300, 3, 30000),
	}
	for format, resources := range resourcesOf {
		assert.Equal(t, want, resources(t, lambda(t, format, "packed")), format)
	}
}

// ownNames are properties that one of the formats has, or that have another name in the other one.
var ownNames = []string{"Name", "LogGroupName", "Qualifier", "AlarmDescription"}

// add adds a resource, by its type, or an alarm by its metric.
func add(all map[string]resource, kind string, r resource) {
	for _, name := range ownNames {
		delete(r, name)
	}
	if metric, is := r["MetricName"].(string); is {
		kind = metric
	}
	all[kind] = r
}

// tfKinds are the types of resources of Terraform, by those of CloudFormation.
var tfKinds = map[string]string{
	"aws_cloudwatch_log_group": "AWS::Logs::LogGroup", "aws_lambda_function": "AWS::Lambda::Function",
	"aws_lambda_event_source_mapping": "AWS::Lambda::EventSourceMapping", "aws_cloudwatch_event_rule": "AWS::Events::Rule",
	"aws_lambda_permission": "AWS::Lambda::Permission", "aws_lambda_function_event_invoke_config": "AWS::Lambda::EventInvokeConfig",
	"aws_cloudwatch_metric_alarm": "AWS::CloudWatch::Alarm",
}

var evaluation = &hcl.EvalContext{Functions: map[string]function.Function{"jsonencode": stdlib.JSONEncodeFunc}}

func tfResources(t *testing.T, document string) map[string]resource {
	t.Helper()
	all := map[string]resource{}
	for _, b := range tfBody(t, document).Blocks {
		if len(b.Labels) == 0 || tfKinds[b.Labels[0]] == "" {
			continue
		}
		r := resource{}
		literals(t, r, b.Body)
		add(all, tfKinds[b.Labels[0]], r)
	}
	return all
}

func tfBody(t *testing.T, document string) *hclsyntax.Body {
	t.Helper()
	file, problems := hclsyntax.ParseConfig([]byte(document), "millrace.tf", hcl.InitialPos)
	require.False(t, problems.HasErrors(), "%v", problems)
	return file.Body.(*hclsyntax.Body)
}

// literals adds the attributes of a body that refer to nothing, and those of the blocks in it.
func literals(t *testing.T, r resource, body *hclsyntax.Body) {
	t.Helper()
	for name, attribute := range body.Attributes {
		if len(attribute.Expr.Variables()) > 0 {
			continue
		}
		value, problems := attribute.Expr.Value(evaluation)
		require.False(t, problems.HasErrors(), "%v", problems)
		text, err := ctyjson.Marshal(value, value.Type())
		require.NoError(t, err)
		var plain any
		require.NoError(t, json.Unmarshal(text, &plain))
		var camel strings.Builder
		for _, word := range strings.Split(name, "_") {
			camel.WriteString(strings.ToUpper(word[:1]) + word[1:])
		}
		r[camel.String()] = plain
	}
	for _, inner := range body.Blocks {
		literals(t, r, inner.Body)
	}
}

func cfnResources(t *testing.T, document string) map[string]resource {
	t.Helper()
	all := map[string]resource{}
	kinds := slices.Collect(maps.Values(tfKinds))
	for _, one := range templateOf(t, document).Resources {
		if !slices.Contains(kinds, one.Type) {
			continue
		}
		var properties struct {
			FilterCriteria struct{ Filters []struct{ Pattern string } }
		}
		r := resource{}
		require.NoError(t, json.Unmarshal(one.Properties, &r))
		require.NoError(t, json.Unmarshal(one.Properties, &properties))
		maps.DeleteFunc(r, func(name string, value any) bool {
			_, isObject := value.(map[string]any)
			return isObject || name == "Targets" || name == "Dimensions"
		})
		for _, f := range properties.FilterCriteria.Filters {
			r["Pattern"] = f.Pattern
		}
		add(all, one.Type, r)
	}
	return all
}

func TestOnlyTheJournalTableHasAStream(t *testing.T) {
	t.Parallel()
	plain := func(format string) string {
		return setup(t).ok(t, "schema", "--format", format, "--layout", "packed", "--prefix", "shop-", "--role", "application")
	}
	stream := "  stream_enabled              = true\n  stream_view_type            = \"KEYS_ONLY\"\n"
	document := lambda(t, "terraform", "packed")
	assert.Contains(t, document, stream)
	tables, _, _ := strings.Cut(strings.Replace(document, stream, "", 1), "\nvariable ")
	assert.Equal(t, plain("terraform"), tables)

	with, without := templateOf(t, lambda(t, "cloudformation", "packed")).Resources, templateOf(t, plain("cloudformation")).Resources
	for id, one := range without {
		var want, got map[string]any
		require.NoError(t, json.Unmarshal(one.Properties, &want))
		require.NoError(t, json.Unmarshal(with[id].Properties, &got))
		if id == "JournalTable" {
			want["StreamSpecification"] = map[string]any{"StreamViewType": "KEYS_ONLY"}
		}
		assert.Equal(t, want, got, id)
	}
}

// attributesOf are the attributes of resources that documents refer to.
var attributesOf = map[string]string{
	"aws_dynamodb_table": "arn stream_arn", "aws_iam_role": "arn id", "aws_iam_policy_document": "json", "aws_cloudwatch_log_group": "arn",
	"aws_lambda_function": "arn function_name", "aws_cloudwatch_event_rule": "arn name",
	"JournalTable": "Arn StreamArn", "LambdaRole": "Arn", "LambdaLogs": "Arn", "LambdaFunction": "Arn", "LambdaSchedule": "Arn",
}

func TestReferencesOfTerraformResolve(t *testing.T) {
	t.Parallel()
	for _, flags := range [][]string{nil, {"--role", "writer", "--role", "application", "--projection-table", "totals", "--tables", "all"}} {
		document := lambda(t, "terraform", "classic", flags...)
		assert.Equal(t, string(hclwrite.Format([]byte(document))), document)
		body := tfBody(t, document)
		declared := map[string]int{}
		for _, b := range body.Blocks {
			declared[strings.TrimPrefix(strings.Join(append([]string{b.Type}, b.Labels...), "."), "resource.")]++
		}
		for name, n := range declared {
			assert.Equal(t, 1, n, name)
		}
		for _, b := range body.Blocks {
			if b.Type == "variable" {
				continue
			}
			for _, used := range variablesOf(b.Body) {
				parts := strings.Split(used, ".")
				switch parts[0] {
				case "var":
					assert.Contains(t, declared, "variable."+parts[1])
				case "data":
					assert.Contains(t, declared, strings.Join(parts[:3], "."))
					assert.Contains(t, strings.Fields(attributesOf[parts[1]]), parts[3])
				default:
					assert.Contains(t, declared, strings.Join(parts[:2], "."))
					if len(parts) > 2 {
						assert.Contains(t, strings.Fields(attributesOf[parts[0]]), parts[2])
					}
				}
			}
		}
	}
}

// variablesOf returns what the expressions of a body refer to, such as "var.lambda_zip".
func variablesOf(body *hclsyntax.Body) (all []string) {
	for _, attribute := range body.Attributes {
		for _, traversal := range attribute.Expr.Variables() {
			parts := []string{traversal.RootName()}
			for _, step := range traversal[1:] {
				parts = append(parts, step.(hcl.TraverseAttr).Name)
			}
			all = append(all, strings.Join(parts, "."))
		}
	}
	for _, inner := range body.Blocks {
		all = append(all, variablesOf(inner.Body)...)
	}
	return all
}

func TestReferencesOfCloudFormationResolve(t *testing.T) {
	t.Parallel()
	template := templateOf(t, lambda(t, "cloudformation", "packed", "--role", "writer", "--tables", "all"))
	var parameters, conditions map[string]any
	require.NoError(t, json.Unmarshal(template.Parameters, &parameters))
	require.NoError(t, json.Unmarshal(template.Conditions, &conditions))
	found := 0
	var visit func(value any)
	visit = func(value any) {
		switch value := value.(type) {
		case []any:
			for _, one := range value {
				visit(one)
			}
		case map[string]any:
			if id, is := value["Ref"].(string); is && id != "AWS::NoValue" {
				found++
				_, isResource := template.Resources[id]
				assert.True(t, isResource || parameters[id] != nil, id)
			}
			if at, is := value["Fn::GetAtt"].([]any); is {
				found++
				assert.Contains(t, template.Resources, at[0])
				assert.True(t, at[1] == "Arn" || slices.Contains(strings.Fields(attributesOf[at[0].(string)]), at[1].(string)), "%v", at)
			}
			if text, is := value["Fn::Sub"].(string); is {
				for _, id := range regexp.MustCompile(`\${(\w+)\.Arn}`).FindAllStringSubmatch(text, -1) {
					assert.Contains(t, template.Resources, id[1])
				}
			}
			if choice, is := value["Fn::If"].([]any); is {
				assert.Contains(t, conditions, choice[0])
			}
			for _, one := range value {
				visit(one)
			}
		}
	}
	visit(conditions)
	for _, one := range template.Resources {
		var properties any
		require.NoError(t, json.Unmarshal(one.Properties, &properties))
		visit(properties)
	}
	assert.Greater(t, found, 30)
}

// patterns returns the pattern of the filter in both formats.
func patterns(t *testing.T, layout journal.Layout, flags ...string) (all []any) {
	t.Helper()
	for format, resources := range resourcesOf {
		text := resources(t, lambda(t, format, string(layout), flags...))["AWS::Lambda::EventSourceMapping"]["Pattern"].(string)
		var pattern any
		strictly(t, []byte(text), &pattern)
		all = append(all, pattern)
	}
	return all
}

// matches is what Lambda does with a record: it has the fields of the pattern, with one of the
// values. Only the rules that documents use are known.
func matches(t *testing.T, pattern, record any) bool {
	t.Helper()
	switch pattern := pattern.(type) {
	case map[string]any:
		fields, is := record.(map[string]any)
		for name, inner := range pattern {
			is = is && fields[name] != nil && matches(t, inner, fields[name])
		}
		return is
	case []any:
		return slices.ContainsFunc(pattern, func(rule any) bool {
			if object, is := rule.(map[string]any); is {
				require.Len(t, object, 1)
				return strings.HasPrefix(record.(string), object["prefix"].(string))
			}
			return rule == record
		})
	}
	require.Fail(t, "not a pattern", "%v", pattern)
	return false
}

// stream returns the records that a stream of keys has about changes between two scans.
func stream(before, after map[string]map[string]types.AttributeValue) (records []any) {
	record := func(event string, item map[string]types.AttributeValue) {
		keys := map[string]any{}
		for _, name := range []string{"pkey", "skey"} {
			switch value := item[name].(type) {
			case *types.AttributeValueMemberS:
				keys[name] = map[string]any{"S": value.Value}
			case *types.AttributeValueMemberN:
				keys[name] = map[string]any{"N": value.Value}
			}
		}
		records = append(records, map[string]any{"eventName": event, "dynamodb": map[string]any{"Keys": keys, "StreamViewType": "KEYS_ONLY"}})
	}
	for key, item := range after {
		if old := before[key]; old == nil {
			record("INSERT", item)
		} else if !assert.ObjectsAreEqual(old, item) {
			record("MODIFY", item)
		}
	}
	for key, item := range before {
		if after[key] == nil {
			record("REMOVE", item)
		}
	}
	return records
}

func journalItems(t *testing.T, client *dynamodb.Client) map[string]map[string]types.AttributeValue {
	t.Helper()
	name := "journal"
	page, err := client.Scan(t.Context(), &dynamodb.ScanInput{TableName: &name})
	require.NoError(t, err)
	items := map[string]map[string]types.AttributeValue{}
	for _, item := range page.Items {
		key, err := json.Marshal([]any{item["pkey"], item["skey"]})
		require.NoError(t, err)
		items[string(key)] = item
	}
	return items
}

func TestCommitsOfTheTopicsInvokeTheFunction(t *testing.T) {
	t.Parallel()
	for _, layout := range []journal.Layout{journal.Classic, journal.Packed} {
		t.Run(string(layout), func(t *testing.T) {
			t.Parallel()
			s := setup(t)
			require.NoError(t, journal.Create(t.Context(), s.client, journal.Config{Layout: layout, Shards: 2}))
			j := s.open(t, journal.Config{})
			repositories := map[string]*repository.Repository[wallet]{}
			for _, topic := range []string{"order", "shop/order", "payment"} {
				r, err := repository.New(j, aggregate.Define[wallet](topic, paid{}), repository.Config{Snapshots: repository.Every(2)})
				require.NoError(t, err)
				repositories[topic] = r
			}
			const all, orders, payments = "", "--lambda-topics=order,shop/order", "--lambda-topics=payment"
			filters := map[string][]any{}
			for _, flags := range []string{all, orders, payments} {
				filters[flags] = patterns(t, layout, strings.Fields(flags)...)
			}
			nothing := func(wallet) (aggregate.Events[wallet], error) { return nil, nil }
			execute := func(decide aggregate.Decision[wallet], options ...repository.Option) func(*repository.Repository[wallet]) error {
				return func(r *repository.Repository[wallet]) error {
					_, err := r.Execute(t.Context(), "1", decide, options...)
					return err
				}
			}
			for _, step := range []struct {
				name    string
				commits bool
				do      func(*repository.Repository[wallet]) error
			}{
				{"the first commit", true, execute(pay)},
				{"another commit", true, execute(pay)},
				{"a command without events", false, execute(nothing, repository.WithCommandID("c"))},
				{"a commit that may replace a placeholder", true, execute(pay, repository.WithCommandID("d"))},
				{"truncation", false, func(r *repository.Repository[wallet]) error {
					return r.Truncate(t.Context(), "1", 2, journal.RemoveOptions{})
				}},
				{"deletion", false, func(r *repository.Repository[wallet]) error {
					return r.Delete(t.Context(), "1", 3, journal.RemoveOptions{})
				}},
			} {
				for topic, r := range repositories {
					before := journalItems(t, s.client)
					require.NoError(t, step.do(r), step.name)
					records := stream(before, journalItems(t, s.client))
					require.NotEmpty(t, records, step.name)
					for flags, selects := range map[string]bool{all: true, orders: topic != "payment", payments: topic == "payment"} {
						for _, pattern := range filters[flags] {
							invoked := slices.ContainsFunc(records, func(record any) bool { return matches(t, pattern, record) })
							what := fmt.Sprintf("%s of %s with %q: %v", step.name, topic, flags, records)
							if step.commits {
								assert.Equal(t, selects, invoked, what)
							} else if !selects {
								assert.False(t, invoked, what)
							}
						}
					}
				}
			}
		})
	}
}

func TestRemovalsInvokeNoFunction(t *testing.T) {
	t.Parallel()
	for _, layout := range []journal.Layout{journal.Classic, journal.Packed} {
		for _, pattern := range patterns(t, layout) {
			assert.False(t, matches(t, pattern, map[string]any{"eventName": "REMOVE"}))
		}
	}
	for _, pattern := range patterns(t, journal.Classic) {
		assert.False(t, matches(t, pattern, map[string]any{"eventName": "MODIFY"}), "an event with a new time to live")
	}
}

func TestBurstsNeedNoOtherPermissionsThanTheFunctionHas(t *testing.T) {
	t.Parallel()
	for _, layout := range []journal.Layout{journal.Classic, journal.Packed} {
		t.Run(string(layout), func(t *testing.T) {
			t.Parallel()
			w := worldOf(t, "application", layout)
			w.tables(t)
			app, err := millrace.Open(t.Context(), w.role.client, millrace.Config{ExistingTables: true})
			require.NoError(t, err)
			r, err := millrace.Repository(app, wallets, repository.Config{})
			require.NoError(t, err)
			_, err = millrace.Process(t.Context(), app, sagas, process.Config{GeneratePublishTopic: toCommands}, "wallet")
			require.NoError(t, err)
			_, err = app.Project(millrace.Group{Name: "balances", Topics: []string{"wallet"}}, addToBalance)
			require.NoError(t, err)
			for _, hinted := range []bool{false, true, false} {
				paid, err := r.Execute(t.Context(), "1", pay)
				require.NoError(t, err)
				var hints []subscriber.Hint
				if hinted {
					hints = append(hints, subscriber.Hint{Aggregate: paid.ID, Version: paid.Version})
				}
				_, err = app.CatchUp(t.Context(), hints...)
				require.NoError(t, err)
				require.NoError(t, app.Groups().WaitApplied(t.Context(), "balances", paid.ID, paid.Version))
			}
			assert.Empty(t, w.guard.denied)
		})
	}
}

func TestAFilterIsAsLongAsLambdaTakes(t *testing.T) {
	t.Parallel()
	var topics []string
	for i := range 300 {
		topics = append(topics, fmt.Sprintf("topic%d", i))
	}
	o := setup(t).run(t, "schema", "--format", "terraform", "--layout", "packed", "--lambda", "shop", "--lambda-topics", strings.Join(topics, ","))
	assert.Equal(t, command.ExitUsage, o.code)
	assert.Contains(t, o.err, "too many topics")
	lambda(t, "terraform", "packed", "--lambda-topics", strings.Join(topics[:150], ","))
}
