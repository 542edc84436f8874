// Command dynamolocal runs a command with DynamoDB Local, and stops the emulator when the command
// ends.
//
//	dynamolocal [flags] [--] COMMAND [ARGUMENTS]
//	dynamolocal [flags]
//
// The command finds the endpoint in MILLRACE_DYNAMODB_ENDPOINT. If that variable is set already,
// the command uses that endpoint. Interrupts and SIGTERM are passed on to the command. The command
// cannot read from the terminal. The exit code is the command's. It is 1 if the emulator cannot be
// started, 2 for wrong usage and 127 if the command cannot be started.
//
// Without a command, the emulator runs until it is interrupted, and the program prints the line to
// export.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"syscall"

	"github.com/millrace-dev/millrace/internal/dynamolocal"
)

func main() {
	os.Exit(run(os.Args[1:], os.Stdout, os.Stderr))
}

func run(args []string, stdout, stderr io.Writer) int {
	o := dynamolocal.Options{Notes: stderr}
	flags := flag.NewFlagSet("dynamolocal", flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.Usage = func() {
		_, _ = fmt.Fprintln(stderr, "usage: dynamolocal [flags] [--] [COMMAND [ARGUMENTS]]")
		flags.PrintDefaults()
	}
	flags.IntVar(&o.Port, "port", 0, "`port` of the emulator; 0 is a free one")
	flags.StringVar(&o.DBPath, "db", "", "`folder` to keep the tables in; empty is in memory")
	flags.BoolVar(&o.Private, "private", false, "start an emulator even if the environment names an endpoint")
	if err := flags.Parse(args); errors.Is(err, flag.ErrHelp) {
		return 0
	} else if err != nil {
		return 2
	}

	// Both stay registered from here on, so that a signal during the start still reaches the
	// command.
	signals := make(chan os.Signal, 8)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	defer signal.Stop(signals)
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer cancel()

	server, err := dynamolocal.Start(ctx, o)
	if err != nil {
		_, _ = fmt.Fprintln(stderr, "dynamolocal:", err)
		return 1
	}
	defer server.Stop()

	if flags.NArg() == 0 {
		return serve(ctx, server, stdout, stderr)
	}
	cmd := exec.Command(flags.Arg(0), flags.Args()[1:]...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = stdin(), stdout, stderr
	code, err := server.Run(cmd, signals)
	if err != nil {
		_, _ = fmt.Fprintln(stderr, "dynamolocal:", err)
		return 127
	}
	reportEnd(server, stderr)
	return code
}

// serve prints how to reach the emulator and waits for the interrupt. If the emulator was there
// already, it does not wait.
func serve(ctx context.Context, server *dynamolocal.Server, stdout, stderr io.Writer) int {
	_, _ = fmt.Fprintf(stdout, "export %s=%s\n", dynamolocal.EndpointEnv, server.Endpoint)
	if !server.Owned() {
		return 0
	}
	select {
	case <-ctx.Done():
		return 0
	case <-server.Done():
		reportEnd(server, stderr)
		return 1
	}
}

// reportEnd reports an emulator that has ended before it was stopped, because that explains the
// errors of its users.
func reportEnd(server *dynamolocal.Server, stderr io.Writer) {
	select {
	case <-server.Done():
		_, _ = fmt.Fprintf(stderr, "dynamolocal: DynamoDB Local ended by itself; it printed:\n%s\n", server.Log())
	default:
	}
}

// stdin returns the standard input of this process, unless that is a terminal. The command has its
// own process group, and the terminal would stop it if it read from the terminal.
func stdin() io.Reader {
	info, err := os.Stdin.Stat()
	if err != nil || info.Mode()&os.ModeCharDevice != 0 {
		return nil
	}
	return os.Stdin
}
