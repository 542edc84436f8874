// Command awsproof runs Millrace on DynamoDB in an AWS account, within a budget, and reports what
// emulators cannot show. See package awsproof.
//
//	awsproof [flags]       asks before it begins
//	awsproof clean PREFIX  deletes the tables of a run that was killed
//
// Account and region are those of the AWS configuration, such as AWS_PROFILE and AWS_REGION. With
// AWS_ENDPOINT_URL or AWS_ENDPOINT_URL_DYNAMODB it runs on an emulator, and the report begins with
// that.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatch"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/sts"
	"github.com/aws/smithy-go/logging"

	"github.com/millrace-dev/millrace/test/awsproof"
)

// writingEnv holds an awsproof.Writing for a process of this program that only writes.
const writingEnv = "MILLRACE_AWSPROOF_WRITING"

// connections is the number of connections that stay open. The SDK's default is 10, and more
// concurrent requests would measure handshakes.
const connections = 256

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:], os.Stdin, os.Stdout)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "awsproof:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, in io.Reader, out io.Writer) error {
	flags := flag.NewFlagSet("awsproof", flag.ContinueOnError)
	var o awsproof.Options
	flags.Float64Var(&o.Budget, "budget", awsproof.MaxBudget, "dollars at which the run stops")
	flags.BoolVar(&o.Yes, "yes", false, "begin without a question")
	flags.StringVar(&o.Only, "only", "", "names of steps, with commas between; all by default")
	flags.Float64Var(&o.Rate, "rate", 500, "events a second of the load")
	flags.DurationVar(&o.Duration, "duration", 20*time.Minute, "duration of the load")
	flags.DurationVar(&o.Hot, "hot", 10*time.Minute, "duration of each hot partition")
	flags.IntVar(&o.Samples, "samples", 500, "requests of each short measurement")
	flags.DurationVar(&o.MetricsWait, "metrics-wait", 15*time.Minute, "longest wait for CloudWatch")
	flags.BoolVar(&o.Restore, "restore", false, "also restore a table to a point in time, which can take an hour")
	role := flags.String("role", "", "ARN of a role that may use DynamoDB and can be assumed, to check policies")
	report := flags.String("report", time.Now().UTC().Format("awsproof-2006-01-02-150405.md"), "file of the report")
	if err := flags.Parse(args); err != nil {
		return err
	}
	// Errors are returned, and the SDK need not log them.
	cfg, err := config.LoadDefaultConfig(ctx, config.WithLogger(logging.Nop{}), config.WithHTTPClient(
		awshttp.NewBuildableClient().WithTransportOptions(func(t *http.Transport) {
			t.MaxIdleConns, t.MaxIdleConnsPerHost = connections, connections
		})))
	if err != nil {
		return err
	}
	client := dynamodb.NewFromConfig(cfg)
	if order := os.Getenv(writingEnv); order != "" {
		var w awsproof.Writing
		if err := json.Unmarshal([]byte(order), &w); err != nil {
			return err
		}
		return awsproof.Write(ctx, client, w, out)
	}
	switch {
	case flags.NArg() == 2 && flags.Arg(0) == "clean":
		return awsproof.Clean(ctx, client, flags.Arg(1), out)
	case flags.NArg() > 0:
		return fmt.Errorf("%q: want flags, or clean PREFIX", flags.Args())
	}
	target, err := targetOf(ctx, cfg, client, *role)
	if err != nil {
		return err
	}
	return awsproof.Run(ctx, target, o, in, out, func() (io.WriteCloser, error) { return os.Create(*report) })
}

// targetOf returns the target of the AWS configuration.
func targetOf(ctx context.Context, cfg aws.Config, client *dynamodb.Client, role string) (awsproof.Target, error) {
	t := awsproof.Target{Client: client, Partition: "aws", Region: cfg.Region, Writer: writer}
	if endpoint := aws.ToString(client.Options().BaseEndpoint); endpoint != "" && !strings.Contains(endpoint, ".amazonaws.") {
		t.Endpoint = endpoint
		return t, nil
	}
	t.Metrics = cloudwatch.NewFromConfig(cfg)
	identity := sts.NewFromConfig(cfg)
	caller, err := identity.GetCallerIdentity(ctx, &sts.GetCallerIdentityInput{})
	if err != nil {
		return t, fmt.Errorf("which account is this: %w", err)
	}
	t.Account = aws.ToString(caller.Account)
	if parts := strings.Split(aws.ToString(caller.Arn), ":"); len(parts) > 1 {
		t.Partition = parts[1]
	}
	if role != "" {
		t.Assume = func(ctx context.Context, policy string) (*dynamodb.Client, error) {
			out, err := identity.AssumeRole(ctx, &sts.AssumeRoleInput{RoleArn: &role, RoleSessionName: aws.String("millrace-proof"), Policy: &policy})
			if err != nil {
				return nil, err
			}
			assumed := aws.Credentials{
				AccessKeyID: *out.Credentials.AccessKeyId, SecretAccessKey: *out.Credentials.SecretAccessKey, SessionToken: *out.Credentials.SessionToken,
			}
			return dynamodb.New(client.Options(), func(o *dynamodb.Options) {
				o.Credentials = aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) { return assumed, nil })
			}), nil
		}
	}
	return t, nil
}

// writer returns a process of this program that only writes.
func writer(ctx context.Context, w awsproof.Writing) (*exec.Cmd, error) {
	program, err := os.Executable()
	order, jsonErr := json.Marshal(w)
	command := exec.CommandContext(ctx, program)
	command.Env, command.Stderr = append(os.Environ(), writingEnv+"="+string(order)), os.Stderr
	return command, errors.Join(err, jsonErr)
}
