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
	"github.com/millrace-dev/millrace/internal/printable"
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
	Seconds  float64       `json:"seconds"` // time since At; 0 if At is in the future
	Next     string        `json:"next,omitempty"`
	Attempts int           `json:"attempts"`
	Failure  string        `json:"failure,omitempty"`
}

// commandLine is a command that is not sent yet.
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
		Short: "List pending timeouts and commands of process managers, and open processes; retry or drop them",
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
		Short: "List pending timeouts and commands of process managers, or with --open the open processes",
		Long: `List the timeouts that process managers have set, and the commands that they have stored and not
sent: all, those of one type, or those of one process.

  ROW       name of the timeout or of the commands, for the commands retry and drop
  AT        time at which the timeout is due, or at which the commands were stored
  LATE      time since then
  ATTEMPTS  number of attempts
  NEXT      time of the next attempt
  FAILURE   error of the last attempt

With --json commands are shown with their payloads.

With --open, list the processes that have begun and have not ended, the oldest first, with their last
event and their state. It lists only processes whose definition has EndsWhen. It does not show
encrypted states.

Both lists cost half a read unit for each 4 KB of the whole table. For one process they cost one unit
for each 4 KB of its rows. With --open each listed process costs two units or more: one for each 4 KB
of its state, and its last event. If nothing of TYPE is found, the command checks that the journal has
the type, as other commands check a topic.`,
		Example: "  millrace process list --overdue\n  millrace process list order-saga o1\n  millrace process list --failed --json | jq -r .failure | sort | uniq -c\n" +
			"  millrace process list --open order-saga --older 24h",
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 2 {
				return fmt.Errorf("%s does not take the argument %q", cmd.Name(), args[2])
			}
			return wants([]string{"TYPE", "ID"}[:len(args)]...)(cmd, args)
		},
		RunE: a.does(func(cmd *cobra.Command, args []string) error {
			var query process.BacklogQuery
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
				return wrongUsage("--overdue and --failed exclude --open: use --older")
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
	flags.BoolVar(&failed, "failed", false, "only timeouts and commands that have failed")
	flags.BoolVar(&open, "open", false, "list the processes that have begun and have not ended")
	flags.DurationVar(&older, "older", 0, "with --open: only processes that began at least this `duration` ago, such as 24h")
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
	return tableMissing(err, "Programs create the table (process.CreateTable). --process-table sets another name.")
}

func (a *app) runPending(ctx context.Context, query process.BacklogQuery, failed bool) error {
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
	if !shown {
		return a.nothing(ctx, query, "No pending timeout or command matches.")
	}
	return rows.Flush()
}

// nothing prints that nothing matches. It returns a noTopicError if the type is misspelled.
func (a *app) nothing(ctx context.Context, query process.BacklogQuery, note string) error {
	if query.Type != "" {
		if err := a.orNoTopic(ctx, query.Type, nil); err != nil {
			return err
		}
	}
	if !a.json {
		a.note("%s", note)
	}
	return nil
}

func (a *app) retryPending() *cobra.Command {
	return &cobra.Command{
		Use:   "retry TYPE ID ROW [flags]",
		Short: "Try a failed timeout or failed commands again at once",
		Long: `Make managers try a failed timeout or failed commands again within their PollInterval, one second,
instead of after their RetryAfter. ROW is the row in the list. A timeout does not fire before it is
due.`,
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
			_, err = fmt.Fprintf(a.env.Out, "%s of %s %s is tried again at the next poll of a manager\n", printable.Text(p.Row), printable.Text(p.Process.Type), printable.Text(p.Process.Value))
			return err
		}),
	}
}

func (a *app) dropPending() *cobra.Command {
	yes := false
	cmd := &cobra.Command{
		Use:   "drop TYPE ID ROW [flags]",
		Short: "Drop a timeout or commands that can never succeed",
		Long: `Drop a timeout or commands. ROW is the row in the list. Managers may run meanwhile.

A dropped timeout never fires, and its process is not notified. A process that waits only for this
timeout waits forever.

Dropped commands are not sent, but their process counts them as sent. Some may have been sent before
one of them failed. The command prints them, so that you can execute them in another way.`,
		Example: "  millrace process drop order-saga o1 commands/8a5f0c52-1f0b-4c11-9d5b-6a1a47a3c0de --json > given-up.json",
		Args:    wants("TYPE", "ID", "ROW"),
		RunE: a.does(func(cmd *cobra.Command, args []string) error {
			b, p, err := a.findPending(cmd.Context(), args)
			if err != nil {
				return err
			}
			what := fmt.Sprintf("Process %s %s will never receive %s.", p.Process.Type, p.Process.Value, p.Row)
			if p.Input != "" {
				what = fmt.Sprintf("Process %s %s counts %s as sent, but they are not sent.", p.Process.Type, p.Process.Value, output.Counted(len(p.Commands), "command", "commands"))
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
	text := fmt.Sprintf("Dropped %s of %s %s\n", printable.Text(l.Row), printable.Text(l.Process.Type), printable.Text(l.Process.Value))
	for _, c := range l.Commands {
		text += fmt.Sprintf("  %s  %s  %s\n", printable.Text(c.Topic), printable.Text(c.ID), printable.Text(c.String()))
	}
	_, err := io.WriteString(a.env.Out, text)
	return err
}

// findPending reads the current state of a row.
func (a *app) findPending(ctx context.Context, args []string) (*process.Backlog, process.Pending, error) {
	id, err := aggregate.NewID(args[0], args[1])
	if err != nil {
		return nil, process.Pending{}, wrongUsage("%v", err)
	}
	b, err := a.backlog(ctx)
	if err != nil {
		return nil, process.Pending{}, err
	}
	for p, err := range b.Pending(ctx, process.BacklogQuery{Type: id.Type, ID: id.Value}) {
		switch {
		case err != nil:
			return nil, p, explainBacklog(err)
		case p.Row == args[2]:
			return b, p, nil
		}
	}
	return nil, process.Pending{}, fmt.Errorf("%s of process %s: %w", args[2], id, process.ErrNotPending)
}
