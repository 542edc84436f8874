package command

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/millrace-dev/millrace/cmd/millrace/internal/output"
	"github.com/millrace-dev/millrace/cmd/millrace/internal/scaffold"
	"github.com/millrace-dev/millrace/internal/printable"
)

// initLine is a service that was written.
type initLine struct {
	Kind   string   `json:"kind"` // "init"
	Dir    string   `json:"dir"`
	Module string   `json:"module"`
	Target string   `json:"target"`
	Files  []string `json:"files"`
}

func (a *app) newService() *cobra.Command {
	s := scaffold.Service{Version: a.env.Library}
	cmd := &cobra.Command{
		Use:   "init NAME [flags]",
		Short: "Write a new service: an aggregate, HTTP, a read model, a process manager, and tests",
		Long: `Write a new service into a folder of its own: an aggregate with commands over HTTP, a read model, a
process manager with a timeout, tests with faults and crashes, and what a deployment on Fargate or
Lambda needs. It runs with nothing but Go: its database is in memory, except on AWS. NAME is the
name of the program, and the prefix of its tables.

The command needs no DynamoDB, and no AWS configuration.`,
		Example: "  millrace init ticket-shop\n  millrace init ticket-shop --target lambda --module github.com/example/ticket-shop",
		Args:    wants("NAME"),
		RunE: a.does(func(_ *cobra.Command, args []string) error {
			s.Name = args[0]
			return a.runInit(s)
		}),
	}
	flags := cmd.Flags()
	flags.StringVar(&s.Target, "target", "fargate", "`platform`: fargate, for containers, or lambda")
	flags.StringVar(&s.Module, "module", "", "`path` of the Go module; default is example.com/ and NAME")
	flags.StringVar(&s.Dir, "dir", "", "`folder` to write to, which is missing or empty; default is NAME")
	flags.StringVar(&s.Replace, "replace", "", "`folder` of a clone of Millrace to use instead of a release")
	return cmd
}

func (a *app) runInit(s scaffold.Service) error {
	s, files, err := scaffold.Write(s)
	if errors.As(err, new(*scaffold.InvalidError)) {
		return wrongUsage("%v", err)
	}
	if err != nil {
		return err
	}
	if a.json {
		return output.NewEncoder(a.env.Out).Encode(initLine{"init", s.Dir, s.Module, s.Target, files})
	}
	_, err = fmt.Fprintf(a.env.Out, "wrote %d files to %s; README.md describes them; next:\n\n  cd %s\n  go mod tidy\n  go test ./...\n  go run .\n",
		len(files), printable.Lines(s.Dir), printable.Lines(s.Dir))
	return err
}
