//go:build ignore

// A function for the tables of `millrace schema`, by the AWS CDK. See docs/howto/run-on-lambda.md.
package main

import (
	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awscloudwatch"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsdynamodb"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsevents"
	"github.com/aws/aws-cdk-go/awscdk/v2/awseventstargets"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsiam"
	"github.com/aws/aws-cdk-go/awscdk/v2/awslambda"
	"github.com/aws/aws-cdk-go/awscdk/v2/awslambdaeventsources"
	"github.com/aws/aws-cdk-go/awscdk/v2/cloudformationinclude"
	"github.com/aws/jsii-runtime-go"
)

func main() {
	defer jsii.Close()
	app := awscdk.NewApp(nil)
	stack := awscdk.NewStack(app, jsii.String("shop"), nil)

	// millrace schema --format cloudformation --layout packed --prefix shop- --role application
	tables := cloudformationinclude.NewCfnInclude(stack, jsii.String("tables"),
		&cloudformationinclude.CfnIncludeProps{TemplateFile: jsii.String("millrace.yaml")})
	var journal awsdynamodb.CfnTable
	jsii.UnsafeCast(tables.GetResource(jsii.String("JournalTable")), &journal)
	journal.SetStreamSpecification(&awsdynamodb.CfnTable_StreamSpecificationProperty{StreamViewType: jsii.String("KEYS_ONLY")})

	function := awslambda.NewFunction(stack, jsii.String("function"), &awslambda.FunctionProps{
		Runtime: awslambda.Runtime_PROVIDED_AL2023(), Architecture: awslambda.Architecture_ARM_64(),
		Handler: jsii.String("bootstrap"), Code: awslambda.Code_FromAsset(jsii.String("bootstrap.zip"), nil),
		Timeout: awscdk.Duration_Seconds(jsii.Number(60)), MemorySize: jsii.Number(512),
		ReservedConcurrentExecutions: jsii.Number(5), RetryAttempts: jsii.Number(0),
	})
	function.Role().AddManagedPolicy(awsiam.ManagedPolicy_FromManagedPolicyArn(stack, jsii.String("application"),
		tables.GetResource(jsii.String("ApplicationPolicy")).Ref()))
	function.AddEventSource(awslambdaeventsources.NewDynamoEventSource(
		awsdynamodb.Table_FromTableAttributes(stack, jsii.String("journal"),
			&awsdynamodb.TableAttributes{TableArn: journal.AttrArn(), TableStreamArn: journal.AttrStreamArn()}),
		&awslambdaeventsources.DynamoEventSourceProps{
			StartingPosition: awslambda.StartingPosition_LATEST, MaxBatchingWindow: awscdk.Duration_Seconds(jsii.Number(1)),
			RetryAttempts: jsii.Number(2), MaxRecordAge: awscdk.Duration_Seconds(jsii.Number(60)),
			Filters: &[]*map[string]any{awslambda.FilterCriteria_Filter(&map[string]any{
				"eventName": []string{"INSERT", "MODIFY"},
			})},
		}))
	awsevents.NewRule(stack, jsii.String("minute"), &awsevents.RuleProps{
		Schedule: awsevents.Schedule_Rate(awscdk.Duration_Minutes(jsii.Number(1))),
		Targets:  &[]awsevents.IRuleTarget{awseventstargets.NewLambdaFunction(function, nil)},
	})
	awscloudwatch.NewMetric(&awscloudwatch.MetricProps{
		Namespace: jsii.String("Millrace"), MetricName: jsii.String("Sweeps"), Statistic: jsii.String("Sum"),
		DimensionsMap: &map[string]*string{"FunctionName": function.FunctionName()},
	}).CreateAlarm(stack, jsii.String("sweeps"), &awscloudwatch.CreateAlarmOptions{
		ComparisonOperator: awscloudwatch.ComparisonOperator_LESS_THAN_THRESHOLD, Threshold: jsii.Number(1),
		EvaluationPeriods: jsii.Number(1), TreatMissingData: awscloudwatch.TreatMissingData_BREACHING,
	})
	app.Synth(nil)
}
