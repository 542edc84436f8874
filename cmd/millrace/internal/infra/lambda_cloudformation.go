package infra

import "go.yaml.in/yaml/v3"

// entries is a mapping of a template. It keeps its order.
type entries []entry

type entry struct {
	key   string
	value any
}

// MarshalYAML implements yaml.Marshaler.
func (e entries) MarshalYAML() (any, error) {
	mapping := &yaml.Node{Kind: yaml.MappingNode}
	for _, one := range e {
		if err := put(mapping, one.key, one.value); err != nil {
			return nil, err
		}
	}
	return mapping, nil
}

func ref(id string) any { return map[string]string{"Ref": id} }

func attributeOf(id, name string) any { return map[string][]string{"Fn::GetAtt": {id, name}} }

// differs is the condition that a parameter has another value.
func differs(parameter, value string) any {
	return map[string]any{"Fn::Not": []any{map[string]any{"Fn::Equals": []any{ref(parameter), value}}}}
}

// lambdaParameters returns the sections of a template before its resources.
func (d Document) lambdaParameters() entries {
	if d.lambda == nil {
		return nil
	}
	return entries{
		{"Parameters", entries{
			{"LambdaCodeBucket", entries{{"Type", "String"}, {"Description", "Bucket with the zip file of the function."}}},
			{"LambdaCodeKey", entries{{"Type", "String"}, {"Description", zipText + " Another key for each release."}, {"Default", "bootstrap.zip"}}},
			{"LambdaConcurrency", entries{{"Type", "Number"}, {"Description", concurrencyText}, {"Default", concurrency}}},
			{"LambdaAlarmTopic", entries{{"Type", "String"}, {"Description", "ARN of the topic of SNS that the alarms notify."}, {"Default", ""}}},
		}},
		{"Conditions", entries{
			{"HasLambdaAlarmTopic", differs("LambdaAlarmTopic", "")},
			{"ReservesLambdaConcurrency", differs("LambdaConcurrency", "-1")},
		}},
	}
}

// lambdaTemplate returns the function with its role, triggers and alarms, by logical id.
func (d Document) lambdaTemplate() (all entries) {
	if d.lambda == nil {
		return nil
	}
	add := func(id, kind string, properties entries) {
		all = append(all, entry{id, cfnResource{Type: "AWS::" + kind, Properties: properties}})
	}
	add("LambdaLogs", "Logs::LogGroup", entries{{"LogGroupName", "/aws/lambda/" + d.lambda.Name}, {"RetentionInDays", logRetention}})
	add("LambdaRole", "IAM::Role", lambdaRole())
	add("LambdaFunction", "Lambda::Function", entries{
		{"FunctionName", d.lambda.Name},
		{"Role", attributeOf("LambdaRole", "Arn")},
		{"Runtime", "provided.al2023"},
		{"Architectures", []string{"arm64"}},
		{"Handler", "bootstrap"},
		{"Code", entries{{"S3Bucket", ref("LambdaCodeBucket")}, {"S3Key", ref("LambdaCodeKey")}}},
		{"Timeout", timeout},
		{"MemorySize", memory},
		{"ReservedConcurrentExecutions", map[string]any{"Fn::If": []any{"ReservesLambdaConcurrency", ref("LambdaConcurrency"), ref("AWS::NoValue")}}},
	})
	add("LambdaEventSource", "Lambda::EventSourceMapping", entries{
		{"EventSourceArn", attributeOf("JournalTable", "StreamArn")},
		{"FunctionName", ref("LambdaFunction")},
		{"StartingPosition", "LATEST"},
		{"BatchSize", batchSize},
		{"MaximumBatchingWindowInSeconds", batchingWindow},
		{"MaximumRetryAttempts", streamRetries},
		{"MaximumRecordAgeInSeconds", maxAge},
		{"ParallelizationFactor", 1},
		{"BisectBatchOnFunctionError", false},
		{"FilterCriteria", entries{{"Filters", []entries{{{"Pattern", d.hints.json()}}}}}},
	})
	add("LambdaSchedule", "Events::Rule", entries{
		{"ScheduleExpression", scheduleExpression},
		{"Targets", []entries{{{"Id", "function"}, {"Arn", attributeOf("LambdaFunction", "Arn")}}}},
	})
	add("LambdaSchedulePermission", "Lambda::Permission", entries{
		{"Action", "lambda:InvokeFunction"},
		{"FunctionName", ref("LambdaFunction")},
		{"Principal", "events.amazonaws.com"},
		{"SourceArn", attributeOf("LambdaSchedule", "Arn")},
	})
	add("LambdaInvokeConfig", "Lambda::EventInvokeConfig", entries{
		{"FunctionName", ref("LambdaFunction")}, {"Qualifier", "$LATEST"}, {"MaximumEventAgeInSeconds", maxAge}, {"MaximumRetryAttempts", 0},
	})
	for _, a := range alarms {
		add("Lambda"+camel(a.name)+"Alarm", "CloudWatch::Alarm", a.properties(d.lambda.Name))
	}
	return all
}

func lambdaRole() entries {
	allow := func(sid string, actions []string, resource any) Statement {
		return Statement{Sid: sid, Effect: "Allow", Action: actions, Resource: resource}
	}
	return entries{
		{"AssumeRolePolicyDocument", entries{{"Version", policyVersion}, {"Statement", []entries{{
			{"Effect", "Allow"}, {"Action", "sts:AssumeRole"}, {"Principal", entries{{"Service", "lambda.amazonaws.com"}}},
		}}}}},
		{"ManagedPolicyArns", []any{ref("ApplicationPolicy")}},
		{"Policies", []entries{{{"PolicyName", "lambda"}, {"PolicyDocument", Policy{policyVersion, []Statement{
			allow("Stream", streamActions, attributeOf("JournalTable", "StreamArn")),
			allow("ListStreams", listActions, "*"),
			allow("Logs", logActions, attributeOf("LambdaLogs", "Arn")),
		}}}}}},
	}
}

func (a alarm) properties(function string) entries {
	return entries{
		{"AlarmName", function + "-" + a.name},
		{"AlarmDescription", a.description},
		{"Namespace", a.namespace},
		{"MetricName", a.metric},
		{"Dimensions", []entries{{{"Name", "FunctionName"}, {"Value", ref("LambdaFunction")}}}},
		{"Statistic", a.statistic},
		{"Period", a.period},
		{"EvaluationPeriods", a.periods},
		{"ComparisonOperator", a.comparison},
		{"Threshold", a.threshold},
		{"TreatMissingData", a.missing},
		{"AlarmActions", map[string]any{"Fn::If": []any{"HasLambdaAlarmTopic", []any{ref("LambdaAlarmTopic")}, ref("AWS::NoValue")}}},
	}
}
