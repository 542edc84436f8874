package command

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/millrace-dev/millrace/cmd/millrace/internal/output"
	"github.com/millrace-dev/millrace/internal/printable"
	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/subscriber/groups"
)

// trimmedLine reports the events that were removed from a topic, or would be removed.
type trimmedLine struct {
	Kind       string         `json:"kind"` // "trimmed"
	Topic      string         `json:"topic"`
	DryRun     bool           `json:"dry_run"`
	Aggregates int            `json:"aggregates"`
	Streams    int            `json:"streams"`
	Events     uint64         `json:"events"`
	Shortened  int            `json:"shortened"`
	HeldBy     map[string]int `json:"held_by"`
	Foreign    int            `json:"foreign"`
}

func (a *app) topic() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "topic COMMAND",
		Short: "Trim a topic that is a queue",
		Args:  onlyCommands,
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(a.trim())
	return cmd
}

func (a *app) trim() *cobra.Command {
	var options groups.TrimOptions
	yes := false
	cmd := &cobra.Command{
		Use:   "trim TOPIC --keep DURATION [flags]",
		Short: "Remove events without an aggregate id that all groups have handled",
		Long: `Remove events of a topic that were published without an aggregate id, that are older than --keep, and
that all consumer groups of the topic have handled. Events that a group has not handled stay. Events
that a group has skipped or deferred stay, together with all later events of their stream. A group
that begins or is reset later does not read the removed events.

--dry-run counts the events, and removes none. If the command ends early, run it again with
--resume-interrupted. It costs one write unit or more for each removed event, and reads all
aggregates of the topic.`,
		Example: "  millrace topic trim mails --keep 72h --dry-run",
		Args:    wants("TOPIC"),
		RunE: a.does(func(cmd *cobra.Command, args []string) error {
			if !cmd.Flags().Changed("keep") {
				return wrongUsage("trim needs --keep, such as --keep 24h")
			}
			if !options.DryRun {
				if err := a.confirm(cmd.Context(), yes, args[0], fmt.Sprintf("This permanently removes events of topic %s.", printable.Text(args[0]))); err != nil {
					return err
				}
			}
			return a.runTrim(cmd.Context(), args[0], options)
		}),
	}
	flags := cmd.Flags()
	flags.DurationVar(&options.Keep, "keep", 0, "minimum age of removed events, a `duration` such as 24h")
	flags.BoolVar(&options.DryRun, "dry-run", false, "count the events, and remove none")
	flags.BoolVar(&options.WithoutGroups, "without-groups", false, "also trim a topic that has no consumer group")
	flags.BoolVar(&options.ResumeInterrupted, "resume-interrupted", false, "also remove the events that an interrupted trim has left")
	flags.BoolVarP(&yes, "yes", "y", false, "do not ask")
	return cmd
}

func (a *app) runTrim(ctx context.Context, topic string, options groups.TrimOptions) error {
	j, err := a.open(ctx)
	if err == nil {
		err = knownTopic(ctx, j, topic)
	}
	if err != nil {
		return err
	}
	progress := a.showProgress()
	options.Corrupt = func(err *journal.CorruptItemError) { a.note("millrace: %v", err) }
	options.Progress = func(t groups.Trimmed) {
		progress.Show(func(time.Duration) string {
			return fmt.Sprintf("%s, %s", output.Counted(t.Aggregates, "aggregate", "aggregates"), output.Counted(t.Events, "event", "events"))
		})
	}
	trimmed, err := groups.New(j).Trim(ctx, topic, options)
	progress.Done()
	if err != nil && trimmed.Events == 0 {
		return err
	}
	if err != nil {
		a.note("The command ended early, and has removed some events. Run it again with --resume-interrupted for the rest.")
	}
	if printErr := a.printTrimmed(trimmed, options.DryRun); err == nil {
		err = printErr
	}
	return err
}

func (a *app) printTrimmed(t groups.Trimmed, dry bool) error {
	if a.json {
		return output.NewEncoder(a.env.Out).Encode(trimmedLine{
			Kind: "trimmed", Topic: t.Topic, DryRun: dry, Aggregates: t.Aggregates, Streams: t.Streams, Events: t.Events,
			Shortened: t.Shortened, HeldBy: t.HeldBy, Foreign: t.Foreign,
		})
	}
	verb := "removed"
	if dry {
		verb = "would remove"
	}
	lines := []string{fmt.Sprintf("%s %s of %s of topic %s", verb, output.Counted(t.Events, "event", "events"),
		output.Counted(t.Shortened, "stream", "streams"), printable.Text(t.Topic))}
	for _, group := range slices.Sorted(maps.Keys(t.HeldBy)) {
		lines = append(lines, fmt.Sprintf("group %s holds up %s", printable.Text(group), output.Counted(t.HeldBy[group], "stream", "streams")))
	}
	if t.Foreign > 0 {
		lines = append(lines, output.Counted(t.Foreign, "stream has", "streams have")+" old events that stay, since they were published with its id")
	}
	_, err := fmt.Fprintln(a.env.Out, strings.Join(lines, "\n"))
	return err
}
