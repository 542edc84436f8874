package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"time"

	"github.com/millrace-dev/millrace/internal/dynamolocal"
)

// tests is a run of `go test`.
type tests struct {
	packages, except []string // patterns
	args, env        []string

	// race compiles with the race detector, if there is a C compiler.
	race bool

	// local runs the tests on DynamoDB Local. If there is none, those of instead run on dynamotest.
	local   bool
	instead []string
}

// Watermill's TestReconnect has a data race of its own, so this one package is compiled without the
// detector. All packages of this repository are compiled with it.
var detector = []string{"-race", "-gcflags=github.com/ThreeDotsLabs/watermill/pubsub/tests=-race=false"}

func (r tests) run(ctx context.Context, c *check) error {
	env := slices.DeleteFunc(os.Environ(), func(v string) bool { return strings.HasPrefix(v, dynamolocal.EndpointEnv+"=") })
	// Otherwise each of the hundred test programs sleeps for a second before it ends.
	env = append(append(env, "GORACE=atexit_sleep_ms=0"), r.env...)
	packages := r.packages
	if r.local {
		server, err := dynamolocal.Start(ctx, dynamolocal.Options{Notes: c.out})
		switch {
		case err == nil:
			defer server.Stop()
			env = server.Environ(env)
		case len(r.instead) == 0:
			return missing(err.Error())
		default:
			c.printf("without DynamoDB Local, some of these run on dynamotest: %v\n", err)
			c.skip("all on DynamoDB Local", err.Error())
			packages = r.instead
		}
	}
	// A result of another clone would count without -count=1.
	args := []string{"test", "-json", "-vet=off", "-timeout=20m", "-count=1"}
	if r.race {
		if cgo, err := output(ctx, "go", "env", "CGO_ENABLED"); err != nil {
			return err
		} else if cgo == "1" {
			args = append(args, detector...)
		} else {
			c.skip("the race detector", "it needs a C compiler such as gcc")
		}
	}
	listed, err := r.list(ctx, packages)
	if err != nil {
		return err
	}
	// After a flag that only a test program knows, go would take no name for a package.
	return c.goTest(ctx, env, append(append(args, listed...), r.args...))
}

// list returns the packages in their order, without those of except.
func (r tests) list(ctx context.Context, packages []string) ([]string, error) {
	if len(r.except) == 0 {
		return packages, nil
	}
	without, err := output(ctx, "go", append([]string{"list"}, r.except...)...)
	if err != nil {
		return nil, err
	}
	var listed []string
	for _, pattern := range packages { // go list would sort them
		found, err := output(ctx, "go", "list", pattern)
		if err != nil {
			return nil, err
		}
		for pkg := range strings.FieldsSeq(found) {
			if !slices.Contains(listed, pkg) && !slices.Contains(strings.Fields(without), pkg) {
				listed = append(listed, pkg)
			}
		}
	}
	return listed, nil
}

// goTest runs `go test -json`.
func (c *check) goTest(ctx context.Context, env, args []string) error {
	cmd := command(ctx, "go", args...)
	cmd.Env, cmd.Stderr = env, c.out
	from, to := io.Pipe()
	cmd.Stdout = to
	read := make(chan error, 1)
	go func() { read <- c.tests.read(from, c.out) }()
	err := cmd.Run()
	_ = to.Close()
	return errors.Join(err, <-read)
}

// command returns a command that ends with ctx, as by Ctrl+C.
func command(ctx context.Context, program string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, program, args...) //nolint:gosec // the commands are those of the phases
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = 10 * time.Second
	return cmd
}

// output returns what a command prints.
func output(ctx context.Context, program string, args ...string) (string, error) {
	cmd := command(ctx, program, args...)
	var errs strings.Builder
	cmd.Stderr = &errs
	printed, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("%s: %w\n%s", cmd, err, errs.String())
	}
	return strings.TrimSpace(string(printed)), nil
}

// do runs a command in a folder, and shows its output.
func (c *check) do(ctx context.Context, folder, program string, args ...string) error {
	cmd := command(ctx, program, args...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = folder, c.out, c.out
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("%s: %w", cmd, err)
	}
	return nil
}
