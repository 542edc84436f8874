package command

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/millrace-dev/millrace/cmd/millrace/internal/output"
	"github.com/millrace-dev/millrace/cmd/millrace/internal/store"
	"github.com/millrace-dev/millrace/internal/printable"
	"github.com/millrace-dev/millrace/journal"
)

// endpointEnv is the environment variable for --endpoint. Examples and tests use it too.
const endpointEnv = "MILLRACE_DYNAMODB_ENDPOINT"

const overview = `millrace operates the tables of a Millrace journal. It creates the tables and shows their contents. It
operates consumer groups, read models and process managers. It verifies, exports and imports the
journal. It also writes new services.

It uses the DynamoDB of your AWS configuration (environment, ~/.aws, the role of the machine), or a
DynamoDB Local whose URL is --endpoint or ` + endpointEnv + `. --prefix or ` + prefixEnv + `
is the Prefix of the application's millrace.Config. The command reads the shard count and the other
settings from the tables.

The format of the output is for people and may change. With --json each line of standard output is a
JSON object. Its field "kind" is the type of the object; docs/reference/command.md has the fields.
Progress and errors go to standard error. Times are in UTC.

Exit codes:
  0  done
  1  the command failed, was interrupted, or found faults
  2  wrong usage; nothing was done
  3  there is no such topic; nothing was done`

// app is one run of the program.
type app struct {
	env   Env
	next  string // if set, how to continue; it is printed after the error
	begun bool   // a command has begun, so the command line was parsed without errors

	target   store.Target
	client   journal.Client // set by connect
	place    store.Target   // what the client reaches, set by connect
	tables   tableNames
	json     bool
	progress bool
}

func (a *app) root() *cobra.Command {
	root := &cobra.Command{
		Use:           "millrace",
		Short:         "Operate the tables of a Millrace journal",
		Long:          overview,
		Version:       a.env.Version,
		SilenceErrors: true,
		SilenceUsage:  true,
	}
	flags := root.PersistentFlags()
	flags.StringVar(&a.target.Endpoint, "endpoint", strings.TrimSpace(a.env.Getenv(endpointEnv)),
		"`URL` of a DynamoDB Local, or \"aws\"; default is $"+endpointEnv+", else AWS")
	flags.Lookup("endpoint").DefValue = "" // makes help the same in any environment
	flags.StringVar(&a.target.Region, "region", "", "AWS region; default is the region of the AWS configuration")
	flags.StringVar(&a.target.Profile, "profile", "", "profile of the AWS configuration")
	a.tables.register(flags, a.env.Getenv)
	flags.BoolVar(&a.json, "json", false, "print JSON objects, one on each line")
	flags.BoolVar(&a.progress, "progress", false, "show progress even if standard error is not a terminal")

	root.SetFlagErrorFunc(plainly)
	root.AddCommand(a.create(), a.adopt(), a.describe(), a.shards(), a.restored(), a.topics(), a.topic(), a.aggregates(), a.stream(), a.tail(), a.verify(), a.export(), a.importing(), a.groups(), a.group(), a.model(), a.process(), a.console(), a.schema(), a.newService())
	for _, cmd := range root.Commands() {
		cmd.DisableFlagsInUseLine = true
	}
	return root
}

// does records that the command line was parsed, completes the names of the tables, and calls run.
func (a *app) does(run func(cmd *cobra.Command, args []string) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		a.begun = true
		a.tables.complete()
		return run(cmd, args)
	}
}

// wants checks the number of arguments, and refuses empty ones. names are the names of the
// arguments in the help.
func wants(names ...string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		switch {
		case len(args) < len(names):
			return fmt.Errorf("%s needs %s", cmd.Name(), joined(names[len(args):]))
		case len(args) > len(names):
			return fmt.Errorf("%s does not take the argument %q", cmd.Name(), args[len(names)])
		}
		if i := slices.Index(args, ""); i >= 0 { // a variable of the shell is not set
			return fmt.Errorf("%s is empty", names[i])
		}
		return nil
	}
}

// onlyCommands refuses arguments of a command that only has subcommands.
func onlyCommands(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		return fmt.Errorf("unknown command %q for %q", args[0], cmd.CommandPath())
	}
	return nil
}

func joined(names []string) string { return strings.Join(names, " and ") }

func (a *app) connect(ctx context.Context) (journal.Client, error) {
	a.place = a.target
	client, err := a.env.Connect(ctx, a.target)
	if err == nil {
		a.client, a.place = client, a.target.Reached(client)
	}
	return client, err
}

// open opens the journal.
func (a *app) open(ctx context.Context) (*journal.Journal, error) {
	client, err := a.connect(ctx)
	if err != nil {
		return nil, err
	}
	return store.Open(ctx, client, journal.Config{Tables: a.tables.Tables})
}

// showProgress returns the progress of a long operation. It shows nothing if standard error is not
// a terminal, unless --progress is set.
func (a *app) showProgress() *output.Progress {
	if !a.env.ErrTerminal && !a.progress {
		return &output.Progress{}
	}
	return output.NewProgress(a.env.Err, a.env.ErrTerminal, a.env.Now)
}

// note prints a message for people to standard error.
func (a *app) note(format string, args ...any) {
	_, _ = fmt.Fprintln(a.env.Err, printable.Lines(fmt.Sprintf(format, args...)))
}

// line prints an object as JSON, or its fields as text.
func (a *app) line(object any, fields ...output.Field) error {
	if a.json {
		return output.NewEncoder(a.env.Out).Encode(object)
	}
	return output.Fields(a.env.Out, fields...)
}

// rate returns n per second.
func rate(n int64, elapsed time.Duration) int64 {
	if elapsed < time.Millisecond {
		return 0
	}
	return int64(float64(n) / elapsed.Seconds())
}
