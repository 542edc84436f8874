// Command millrace operates the tables of a Millrace journal. It creates the tables, shows
// aggregates and topics, operates consumer groups, and verifies, exports and imports the journal.
// docs/reference/command.md describes its output for programs.
//
//	go run ./cmd/millrace --help
//
// It is a separate module, so that programs that use the packages do not need its dependencies.
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
	"github.com/millrace-dev/millrace/cmd/millrace/internal/scaffold"
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
		Library: library(),
	}))
}

// version returns the version of the module, or "(devel)" if it is not known.
func version() string {
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" {
		return info.Main.Version
	}
	return "(devel)"
}

// library returns the version of Millrace, or "" if it is not a release.
func library() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return ""
	}
	for _, module := range info.Deps {
		if module.Path == scaffold.Library && module.Replace == nil && module.Version != "(devel)" {
			return module.Version
		}
	}
	return ""
}
