// Command millrace looks after the tables of a Millrace journal: it makes them, shows aggregates
// and topics, operates consumer groups, verifies, exports and imports. docs/reference/command.md has what it
// prints for programs.
//
//	go run ./cmd/millrace --help
//
// It is a module of its own, so that who uses the packages needs nothing of what only a command
// line needs.
package main

import (
	"context"
	"os"
	"os/signal"
	"runtime/debug"
	"syscall"
	"time"

	"github.com/mattn/go-isatty"

	"github.com/millrace-dev/millrace/cmd/millrace/internal/command"
	"github.com/millrace-dev/millrace/cmd/millrace/internal/store"
	"github.com/millrace-dev/millrace/journal"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second interrupt ends the process at once
	os.Exit(command.Run(ctx, os.Args[1:], command.Env{
		In: os.Stdin, Out: os.Stdout, Err: os.Stderr,
		InTerminal: isatty.IsTerminal(os.Stdin.Fd()), OutTerminal: isatty.IsTerminal(os.Stdout.Fd()), ErrTerminal: isatty.IsTerminal(os.Stderr.Fd()),
		Getenv:  os.Getenv,
		Connect: func(ctx context.Context, t store.Target) (journal.Client, error) { return t.Connect(ctx) },
		Now:     time.Now,
		Version: version(),
	}))
}

// version returns the version of the module, or "(devel)" where the go command did not know it.
func version() string {
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" {
		return info.Main.Version
	}
	return "(devel)"
}
