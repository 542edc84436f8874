package infra

import (
	"fmt"
	"strconv"
)

// lambdaResources returns the function with its variables, role, triggers and alarms.
func (d Document) lambdaResources() []*block {
	if d.lambda == nil {
		return nil
	}
	all := append(variables(), d.lambdaAccess()...)
	all = append(all, d.function(), d.eventSource())
	all = append(all, schedule(d.lambda.Name)...)
	for _, a := range alarms {
		all = append(all, a.resource(d.lambda.Name))
	}
	return all
}

func resource(kind string) *block { return &block{header: fmt.Sprintf("resource %q \"lambda\"", kind)} }

func variables() (all []*block) {
	for _, v := range []struct{ name, description, kind, byDefault string }{
		{"zip", zipText, "string", quoted("bootstrap.zip")},
		{"concurrency", concurrencyText, "number", strconv.Itoa(concurrency)},
		{"alarm_actions", "ARNs that the alarms notify, such as a topic of SNS.", "list(string)", "[]"},
	} {
		b := &block{header: fmt.Sprintf("variable \"lambda_%s\"", v.name)}
		b.set("description", quoted(v.description))
		b.set("type", v.kind)
		b.set("default", v.byDefault)
		all = append(all, b)
	}
	return all
}

// lambdaAccess returns the role, its policy, and the log group.
func (d Document) lambdaAccess() []*block {
	logs := resource("aws_cloudwatch_log_group")
	logs.set("name", quoted("/aws/lambda/"+d.lambda.Name))
	logs.set("retention_in_days", strconv.Itoa(logRetention))

	trust := &block{header: `data "aws_iam_policy_document" "lambda_trust"`}
	statement := trust.add("statement")
	statement.set("actions", `["sts:AssumeRole"]`)
	principals := statement.add("principals")
	principals.set("type", quoted("Service"))
	principals.set("identifiers", `["lambda.amazonaws.com"]`)

	role := resource("aws_iam_role")
	role.set("name", quoted(d.lambda.Name))
	role.set("assume_role_policy", "data.aws_iam_policy_document.lambda_trust.json")

	allowed := &block{header: `data "aws_iam_policy_document" "lambda"`}
	allowed.set("source_policy_documents", "[data.aws_iam_policy_document.application.json]")
	allowed.addStatement("Stream", streamActions, "aws_dynamodb_table.journal.stream_arn")
	allowed.addStatement("ListStreams", listActions, quoted("*"))
	allowed.addStatement("Logs", logActions, `"${aws_cloudwatch_log_group.lambda.arn}:*"`)

	policy := resource("aws_iam_role_policy")
	policy.set("name", quoted(d.lambda.Name))
	policy.set("role", "aws_iam_role.lambda.id")
	policy.set("policy", "data.aws_iam_policy_document.lambda.json")
	return []*block{logs, trust, role, allowed, policy}
}

func (d Document) function() *block {
	b := resource("aws_lambda_function")
	b.set("function_name", quoted(d.lambda.Name))
	b.set("role", "aws_iam_role.lambda.arn")
	b.set("runtime", quoted("provided.al2023"))
	b.set("architectures", `["arm64"]`)
	b.set("handler", quoted("bootstrap"))
	b.set("filename", "var.lambda_zip")
	b.set("source_code_hash", "filebase64sha256(var.lambda_zip)")
	b.set("timeout", strconv.Itoa(timeout))
	b.set("memory_size", strconv.Itoa(memory))
	b.set("reserved_concurrent_executions", "var.lambda_concurrency")
	b.set("depends_on", "[aws_iam_role_policy.lambda]")
	return b
}

// eventSource lets the stream invoke the function.
func (d Document) eventSource() *block {
	b := resource("aws_lambda_event_source_mapping")
	b.set("event_source_arn", "aws_dynamodb_table.journal.stream_arn")
	b.set("function_name", "aws_lambda_function.lambda.arn")
	b.set("starting_position", quoted("LATEST"))
	b.set("batch_size", strconv.Itoa(batchSize))
	b.set("maximum_batching_window_in_seconds", strconv.Itoa(batchingWindow))
	b.set("maximum_retry_attempts", strconv.Itoa(streamRetries))
	b.set("maximum_record_age_in_seconds", strconv.Itoa(maxAge))
	b.set("parallelization_factor", "1")
	b.set("bisect_batch_on_function_error", "false")
	b.add("filter_criteria").add("filter").set("pattern", d.hints.expression())
	return b
}

// schedule invokes the function each minute.
func schedule(function string) []*block {
	rule := resource("aws_cloudwatch_event_rule")
	rule.set("name", quoted(function))
	rule.set("schedule_expression", quoted(scheduleExpression))

	target := resource("aws_cloudwatch_event_target")
	target.set("rule", "aws_cloudwatch_event_rule.lambda.name")
	target.set("arn", "aws_lambda_function.lambda.arn")

	permission := resource("aws_lambda_permission")
	permission.set("action", quoted("lambda:InvokeFunction"))
	permission.set("function_name", "aws_lambda_function.lambda.function_name")
	permission.set("principal", quoted("events.amazonaws.com"))
	permission.set("source_arn", "aws_cloudwatch_event_rule.lambda.arn")

	invoke := resource("aws_lambda_function_event_invoke_config")
	invoke.set("function_name", "aws_lambda_function.lambda.function_name")
	invoke.set("maximum_event_age_in_seconds", strconv.Itoa(maxAge))
	invoke.set("maximum_retry_attempts", "0")
	return []*block{rule, target, permission, invoke}
}

func (a alarm) resource(function string) *block {
	b := &block{header: fmt.Sprintf("resource \"aws_cloudwatch_metric_alarm\" \"lambda_%s\"", a.name)}
	b.set("alarm_name", quoted(function+"-"+a.name))
	b.set("alarm_description", quoted(a.description))
	b.set("namespace", quoted(a.namespace))
	b.set("metric_name", quoted(a.metric))
	b.set("dimensions", "{ FunctionName = aws_lambda_function.lambda.function_name }")
	b.set("statistic", quoted(a.statistic))
	b.set("period", strconv.Itoa(a.period))
	b.set("evaluation_periods", strconv.Itoa(a.periods))
	b.set("comparison_operator", quoted(a.comparison))
	b.set("threshold", strconv.Itoa(a.threshold))
	b.set("treat_missing_data", quoted(a.missing))
	b.set("alarm_actions", "var.lambda_alarm_actions")
	return b
}
