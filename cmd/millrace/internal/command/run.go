package command

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/millrace-dev/millrace/cmd/millrace/internal/store"
	"github.com/millrace-dev/millrace/internal/printable"
	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/projection/readmodel"
)

// Exit codes.
const (
	ExitOK = 0
	// ExitFailure means that the command failed, was interrupted, or found faults.
	ExitFailure = 1
	// ExitUsage means that the command line is wrong. Nothing was done.
	ExitUsage = 2
	// ExitNoTopic means that the topic does not exist. Nothing was done.
	ExitNoTopic = 3
)

// Env is the environment of the program.
type Env struct {
	In       io.Reader
	Out, Err io.Writer
	// InTerminal reports that the user can be asked, OutTerminal that the output can be redrawn,
	// and ErrTerminal that progress can be shown.
	InTerminal, OutTerminal, ErrTerminal bool
	// Getenv reads the environment.
	Getenv func(string) string
	// Connect returns a client.
	Connect func(context.Context, store.Target) (journal.Client, error)
	// Now is the clock.
	Now func() time.Time
	// Version is the version that --version prints.
	Version string
	// Library is the version of Millrace that new services use. It is empty if it is not known.
	Library string
}

// Run runs one command, and returns the exit code. It ends early when ctx ends.
func Run(ctx context.Context, args []string, env Env) int {
	a := &app{env: env}
	root := a.root()
	root.SetArgs(args)
	root.SetIn(env.In)
	root.SetOut(env.Out)
	root.SetErr(env.Err)
	cmd, err := root.ExecuteContextC(ctx)
	if err == nil {
		return ExitOK
	}
	if !a.begun || isUsage(err) {
		_, _ = fmt.Fprintf(env.Err, "millrace: %s\nSee: %s --help\n", printable.Lines(err.Error()), cmd.CommandPath())
		return ExitUsage
	}
	_, _ = fmt.Fprintf(env.Err, "millrace: %s\n", printable.Lines(a.explain(ctx, err)))
	if a.next != "" {
		a.note("%s", a.next)
	}
	if errors.As(err, new(*noTopicError)) {
		return ExitNoTopic
	}
	return ExitFailure
}

// usageError is an error of the command line that a command finds after its start.
type usageError struct{ reason string }

func (e *usageError) Error() string { return e.reason }

// isUsage reports whether only the command line can have caused an error.
func isUsage(err error) bool {
	var wrong *usageError
	var config *readmodel.ConfigError
	return errors.As(err, &wrong) || errors.Is(err, store.ErrEndpoint) || errors.As(err, new(*journal.ConfigError)) ||
		errors.As(err, &config)
}

func wrongUsage(format string, args ...any) error {
	return &usageError{fmt.Sprintf(format, args...)}
}
