package command

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/millrace-dev/millrace/cmd/millrace/internal/output"
	"github.com/millrace-dev/millrace/cmd/millrace/internal/store"
	"github.com/millrace-dev/millrace/journal"
)

// endpointEnv is the variable that the examples and tests have too.
const endpointEnv = "MILLRACE_DYNAMODB_ENDPOINT"

const overview = `millrace looks after the tables of a Millrace journal: it makes them, shows what is in them, operates
consumer groups, read models and process managers, and verifies, exports and imports the journal.

It works on the DynamoDB of your AWS configuration (environment, ~/.aws, the role of the machine), or on a DynamoDB Local
that --endpoint or ` + endpointEnv + ` names by its URL. --prefix or ` + prefixEnv + ` is the Prefix of the
application's millrace.Config. What else an application configures, such as the shard count, is taken from the tables.

Tables and texts are for people and may change; with --json each line of standard output is a JSON object whose
"kind" says what it is; docs/reference/command.md has the fields. Progress and errors go to standard error. Times are in UTC.

Exit codes:
  0  done
  1  it failed, was interrupted, or found faults
  2  wrong usage; nothing was done
  3  there is no such topic; nothing was done`

// app is one run of the program.
type app struct {
	env   Env
	begun bool // a command has begun, so the command line was right as far as it can be told

	target   store.Target
	tables   tableNames
	json     bool
	progress bool
}

func (a *app) root() *cobra.Command {
	root := &cobra.Command{
		Use:           "millrace",
		Short:         "Look after the tables of a Millrace journal",
		Long:          overview,
		Version:       a.env.Version,
		SilenceErrors: true,
		SilenceUsage:  true,
	}
	flags := root.PersistentFlags()
	flags.StringVar(&a.target.Endpoint, "endpoint", strings.TrimSpace(a.env.Getenv(endpointEnv)),
		"`URL` of a DynamoDB Local, or \"aws\"; default is $"+endpointEnv+", else AWS")
	flags.Lookup("endpoint").DefValue = "" // said already, and help is the same everywhere then
	flags.StringVar(&a.target.Region, "region", "", "AWS region; default is that of the AWS configuration")
	flags.StringVar(&a.target.Profile, "profile", "", "profile of the AWS configuration")
	a.tables.register(flags, a.env.Getenv)
	flags.BoolVar(&a.json, "json", false, "print JSON objects, one a line")
	flags.BoolVar(&a.progress, "progress", false, "show progress even if standard error is no terminal")

	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return plainly(err) })
	root.AddCommand(a.create(), a.adopt(), a.describe(), a.shards(), a.restored(), a.topics(), a.topic(), a.aggregates(), a.stream(), a.tail(), a.verify(), a.export(), a.importing(), a.groups(), a.group(), a.model(), a.process(), a.console(), a.schema())
	for _, cmd := range root.Commands() {
		cmd.DisableFlagsInUseLine = true
	}
	return root
}

// does marks where the command line has been understood, and completes the names of the tables.
func (a *app) does(run func(cmd *cobra.Command, args []string) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		a.begun = true
		a.tables.complete()
		return run(cmd, args)
	}
}

// wants is for the arguments that a command takes, by the names in its help.
func wants(names ...string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		switch {
		case len(args) < len(names):
			return fmt.Errorf("%s wants %s", cmd.Name(), joined(names[len(args):]))
		case len(args) > len(names):
			return fmt.Errorf("%s has no use for %q", cmd.Name(), args[len(names)])
		}
		return nil
	}
}

// onlyCommands is for a command that has commands of its own and does nothing by itself.
func onlyCommands(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		return fmt.Errorf("unknown command %q for %q", args[0], cmd.CommandPath())
	}
	return nil
}

func joined(names []string) string { return strings.Join(names, " and ") }

func (a *app) connect(ctx context.Context) (journal.Client, error) {
	return a.env.Connect(ctx, a.target)
}

// open opens the journal.
func (a *app) open(ctx context.Context) (*journal.Journal, error) {
	client, err := a.connect(ctx)
	if err != nil {
		return nil, err
	}
	return store.Open(ctx, client, journal.Config{Tables: a.tables.Tables})
}

// showProgress is for work that takes a while.
func (a *app) showProgress() *output.Progress {
	if !a.env.ErrTerminal && !a.progress {
		return &output.Progress{}
	}
	return output.NewProgress(a.env.Err, a.env.ErrTerminal, a.env.Now)
}

// note prints something beside the result, for people.
func (a *app) note(format string, args ...any) {
	_, _ = fmt.Fprintf(a.env.Err, format+"\n", args...)
}

// line prints one thing: as an object, or as fields.
func (a *app) line(object any, fields ...output.Field) error {
	if a.json {
		return output.NewEncoder(a.env.Out).Encode(object)
	}
	return output.Fields(a.env.Out, fields...)
}

// rate is how much there is in a second.
func rate(n int64, elapsed time.Duration) int64 {
	if elapsed < time.Millisecond {
		return 0
	}
	return int64(float64(n) / elapsed.Seconds())
}
