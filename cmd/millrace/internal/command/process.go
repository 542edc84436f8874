package command

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/cmd/millrace/internal/output"
	"github.com/millrace-dev/millrace/internal/metadata"
	"github.com/millrace-dev/millrace/process"
)

// pendingLine is a timeout that is set, or commands that are not sent.
type pendingLine struct {
	Kind     string        `json:"kind"` // "pending", "retried", "given_up"
	Process  aggregateName `json:"process"`
	Row      string        `json:"row"`
	Timeout  string        `json:"timeout,omitempty"`
	Input    string        `json:"input,omitempty"`
	Commands []commandLine `json:"commands,omitempty"`
	At       string        `json:"at,omitempty"`
	Seconds  float64       `json:"seconds"` // since then; 0 if it is still to come
	Next     string        `json:"next,omitempty"`
	Attempts int           `json:"attempts"`
	Failure  string        `json:"failure,omitempty"`
}

// commandLine is a command as it will be sent.
type commandLine struct {
	Topic    string            `json:"topic"`
	ID       string            `json:"id"`
	Metadata map[string]string `json:"metadata,omitempty"`
	Binary   [][2][]byte       `json:"metadata_binary,omitempty"`
	output.Payload
}

func newPendingLine(kind string, p process.Pending, now time.Time) pendingLine {
	l := pendingLine{
		Kind: kind, Process: nameOf(p.Process), Row: p.Row, Timeout: p.Timeout, Input: p.Input,
		At: output.Time(p.At), Next: output.Time(p.Next), Attempts: p.Attempts, Failure: p.Failure,
	}
	if !p.At.IsZero() {
		l.Seconds = max(now.Sub(p.At), 0).Seconds()
	}
	for _, c := range p.Commands {
		l.Commands = append(l.Commands, commandLine{
			Topic: c.Topic, ID: c.Message.UUID, Metadata: metadata.Text(c.Message.Metadata),
			Binary: metadata.Binary(c.Message.Metadata), Payload: output.PayloadOf(c.Message.Payload),
		})
	}
	return l
}

var pendingColumns = []output.Column[pendingLine]{
	{Name: "PROCESS", Cell: func(p pendingLine) string { return p.Process.Type + " " + p.Process.Value }},
	{Name: "ROW", Cell: func(p pendingLine) string { return p.Row }},
	{Name: "AT", Cell: func(p pendingLine) string { return p.At }},
	{Name: "LATE", Cell: func(p pendingLine) string {
		if p.Seconds == 0 {
			return "-"
		}
		return time.Duration(p.Seconds * float64(time.Second)).Round(time.Second).String()
	}},
	{Name: "ATTEMPTS", Cell: func(p pendingLine) string { return strconv.Itoa(p.Attempts) }},
	{Name: "NEXT", Cell: func(p pendingLine) string { return p.Next }},
	{Name: "COMMANDS", Cell: func(p pendingLine) string { return strconv.Itoa(len(p.Commands)) }},
	{Name: "FAILURE", Cell: func(p pendingLine) string { return p.Failure }},
}

func (a *app) process() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "process COMMAND",
		Short: "Show what process managers have left to do and which processes are open; retry or drop something",
		Args:  onlyCommands,
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(a.listProcesses(), a.retryPending(), a.dropPending(), a.unlistProcess())
	return cmd
}

func (a *app) listProcesses() *cobra.Command {
	var overdue, failed, open bool
	var older time.Duration
	limit := 100
	cmd := &cobra.Command{
		Use:   "list [TYPE [ID]] [flags]",
		Short: "List what process managers have left to do, or with --open the processes that are not over",
		Long: `List the timeouts that process managers have set, and the commands that they have stored and not sent: all, those of a type, or of one process.

AT is when a timeout is due, or when commands were stored, LATE how long ago that is, ATTEMPTS how often a manager has taken it up, NEXT when
one will again, and FAILURE why the last attempt failed. With --json commands are shown with their payloads.

With --open, list the processes that have begun and are not over, the oldest first, with the time of their last event and their state. Only
processes whose definition has OverWhen are listed. States that are encrypted are not shown.

Either costs half a read unit for each 4 KB of the table, whatever is selected; for one process, one unit for each 4 KB of its own. With
--open each process that is shown costs two units or more: one for each 4 KB of its state, and its last event.`,
		Example: "  millrace process list --overdue\n  millrace process list order-saga o1\n  millrace process list --failed --json | jq -r .failure | sort | uniq -c\n" +
			"  millrace process list --open order-saga --older 24h",
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 2 {
				return fmt.Errorf("%s has no use for %q", cmd.Name(), args[2])
			}
			return nil
		},
		RunE: a.does(func(cmd *cobra.Command, args []string) error {
			var query process.Query
			if len(args) > 0 {
				query.Type = args[0]
			}
			if len(args) > 1 {
				query.ID = args[1]
			}
			flags := cmd.Flags()
			if !open {
				if flags.Changed("older") || flags.Changed("limit") {
					return wrongUsage("--older and --limit need --open")
				}
				if overdue {
					query.Before = a.env.Now()
				}
				return a.runPending(cmd.Context(), query, failed)
			}
			switch {
			case overdue || failed:
				return wrongUsage("--overdue and --failed are not for --open, which has --older")
			case older < 0:
				return wrongUsage("--older is %s: want 0 or more", older)
			case limit < 0:
				return wrongUsage("--limit is %d: want 1 or more, or 0 for all", limit)
			case older > 0:
				query.Before = a.env.Now().Add(-older)
			}
			return a.runOpen(cmd.Context(), query, limit)
		}),
	}
	flags := cmd.Flags()
	flags.BoolVar(&overdue, "overdue", false, "only timeouts that are due, and commands")
	flags.BoolVar(&failed, "failed", false, "only what has failed")
	flags.BoolVar(&open, "open", false, "the processes that have begun and are not over")
	flags.DurationVar(&older, "older", 0, "with --open: only those that began at least this `duration` ago, such as 24h")
	flags.IntVar(&limit, "limit", limit, "with --open: `number` of processes to show; 0 is all")
	return cmd
}

func (a *app) backlog(ctx context.Context) (*process.Backlog, error) {
	client, err := a.connect(ctx)
	if err != nil {
		return nil, err
	}
	return process.NewBacklog(client, a.tables.process), nil
}

func explainBacklog(err error) error {
	return tableMissing(err, "Has the application a prefix? --prefix or $"+prefixEnv+" begins the name with it, --process-table names the table. The programs make it.")
}

func (a *app) runPending(ctx context.Context, query process.Query, failed bool) error {
	b, err := a.backlog(ctx)
	if err != nil {
		return err
	}
	rows, shown := output.NewRows(a.env.Out, a.json, pendingColumns...), false
	for p, err := range b.Pending(ctx, query) {
		if err != nil {
			return errors.Join(rows.Flush(), explainBacklog(err))
		}
		if failed && p.Failure == "" {
			continue
		}
		shown = true
		if err := rows.Print(newPendingLine("pending", p, a.env.Now())); err != nil {
			return err
		}
	}
	if !shown && !a.json {
		a.note("No pending timeout or command matches.")
	}
	return rows.Flush()
}

func (a *app) retryPending() *cobra.Command {
	return &cobra.Command{
		Use:   "retry TYPE ID ROW [flags]",
		Short: "Have a timeout or commands that failed tried again at once",
		Long: `Have a timeout or commands that failed tried again within the managers' PollInterval, a second, and not only when their RetryAfter is over. ROW is as the list
shows it. A timeout does not fire before it is due.`,
		Example: "  millrace process retry order-saga o1 timeout/answers",
		Args:    wants("TYPE", "ID", "ROW"),
		RunE: a.does(func(cmd *cobra.Command, args []string) error {
			b, p, err := a.findPending(cmd.Context(), args)
			if err != nil {
				return err
			}
			if p.Timeout != "" && p.At.After(a.env.Now()) {
				return fmt.Errorf("timeout %q of process %s is not due before %s", p.Timeout, p.Process, output.Time(p.At))
			}
			if err := b.Retry(cmd.Context(), p); err != nil {
				return err
			}
			if a.json {
				return output.NewEncoder(a.env.Out).Encode(newPendingLine("retried", p, a.env.Now()))
			}
			_, err = fmt.Fprintf(a.env.Out, "%s of %s %s is tried again as soon as a manager looks\n", output.Clean(p.Row), output.Clean(p.Process.Type), output.Clean(p.Process.Value))
			return err
		}),
	}
}

func (a *app) dropPending() *cobra.Command {
	yes := false
	cmd := &cobra.Command{
		Use:   "drop TYPE ID ROW [flags]",
		Short: "Give up a timeout or commands that can never succeed",
		Long: `Give up a timeout or commands. ROW is as the list shows it. A timeout that is dropped never fires, and its process does not know: if it waits for nothing
else, it waits forever. Commands that are dropped are not sent, though their process counts them as sent; some may have been sent before
one of them failed. They are printed, so that you can do what they ask for in another way. Managers may run meanwhile.`,
		Example: "  millrace process drop order-saga o1 commands/8a5f0c52-1f0b-4c11-9d5b-6a1a47a3c0de --json > given-up.json",
		Args:    wants("TYPE", "ID", "ROW"),
		RunE: a.does(func(cmd *cobra.Command, args []string) error {
			b, p, err := a.findPending(cmd.Context(), args)
			if err != nil {
				return err
			}
			what := fmt.Sprintf("Process %s %s never gets %s.", p.Process.Type, p.Process.Value, p.Row)
			if p.Input != "" {
				what = fmt.Sprintf("Process %s %s takes %s for sent, and they are not.", p.Process.Type, p.Process.Value, output.Counted(len(p.Commands), "command", "commands"))
			}
			if err := a.confirm(cmd.Context(), yes, p.Process.Value, what); err != nil {
				return err
			}
			if err := b.Drop(cmd.Context(), p); err != nil {
				return err
			}
			return a.printGivenUp(newPendingLine("given_up", p, a.env.Now()))
		}),
	}
	cmd.Flags().BoolVar(&yes, "yes", false, "do not ask")
	return cmd
}

func (a *app) printGivenUp(l pendingLine) error {
	if a.json {
		return output.NewEncoder(a.env.Out).Encode(l)
	}
	text := fmt.Sprintf("Dropped %s of %s %s\n", output.Clean(l.Row), output.Clean(l.Process.Type), output.Clean(l.Process.Value))
	for _, c := range l.Commands {
		text += fmt.Sprintf("  %s  %s  %s\n", output.Clean(c.Topic), output.Clean(c.ID), output.Clean(c.String()))
	}
	_, err := io.WriteString(a.env.Out, text)
	return err
}

// findPending reads a row as it is now.
func (a *app) findPending(ctx context.Context, args []string) (*process.Backlog, process.Pending, error) {
	id, err := aggregate.NewID(args[0], args[1])
	if err != nil {
		return nil, process.Pending{}, wrongUsage("%v", err)
	}
	b, err := a.backlog(ctx)
	if err != nil {
		return nil, process.Pending{}, err
	}
	for p, err := range b.Pending(ctx, process.Query{Type: id.Type, ID: id.Value}) {
		switch {
		case err != nil:
			return nil, p, explainBacklog(err)
		case p.Row == args[2]:
			return b, p, nil
		}
	}
	return nil, process.Pending{}, fmt.Errorf("%s of process %s: %w", args[2], id, process.ErrNotPending)
}
