package command

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/millrace-dev/millrace/cmd/millrace/internal/output"
	"github.com/millrace-dev/millrace/internal/storage"
	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/subscriber/groups"
)

// topicLine is a topic, which is an aggregate type.
type topicLine struct {
	Kind       string `json:"kind"` // "topic"
	Topic      string `json:"topic"`
	Aggregates uint64 `json:"aggregates"` // including deleted aggregates
	Events     uint64 `json:"events"`     // including truncated and deleted events
}

var topicColumns = []output.Column[topicLine]{
	{Name: "TOPIC", Cell: func(t topicLine) string { return t.Topic }},
	{Name: "AGGREGATES", Cell: func(t topicLine) string { return output.Count(t.Aggregates) }},
	{Name: "EVENTS", Cell: func(t topicLine) string { return output.Count(t.Events) }},
}

func (a *app) topics() *cobra.Command {
	return &cobra.Command{
		Use:   "topics [flags]",
		Short: "List the topics, which are the aggregate types",
		Long: `List the topics of the journal, with the numbers of their aggregates and events. The numbers include
deleted aggregates and truncated events.

It reads all aggregates, since there is no list of types. In the classic layout it scans the snapshot
table: one read unit for each 4 KB, including states. In the packed layout it scans an index and reads
the last commit of each aggregate: one read unit or more for each aggregate.`,
		Args: wants(),
		RunE: a.does(func(cmd *cobra.Command, _ []string) error { return a.runTopics(cmd.Context()) }),
	}
}

func (a *app) runTopics(ctx context.Context) error {
	j, err := a.open(ctx)
	if err != nil {
		return err
	}
	topics := map[string]*topicLine{}
	progress, all := a.showProgress(), 0
	for head, err := range j.Heads(ctx, journal.HeadsQuery{Corrupt: func(err *journal.CorruptItemError) { a.note("millrace: %v", err) }}) {
		if err != nil {
			progress.Done()
			return err
		}
		t := topics[head.Aggregate.Type]
		if t == nil {
			t = &topicLine{Kind: "topic", Topic: head.Aggregate.Type}
			topics[t.Topic] = t
		}
		t.Aggregates++
		t.Events += head.Version
		all++
		progress.Show(func(time.Duration) string { return output.Counted(all, "aggregate", "aggregates") })
	}
	progress.Done()
	rows := output.NewRows(a.env.Out, a.json, topicColumns...)
	for _, t := range sortedTopics(topics) {
		if err := rows.Print(*t); err != nil {
			return err
		}
	}
	if len(topics) == 0 && !a.json {
		a.note("The journal has no aggregates.")
	}
	return rows.Flush()
}

func sortedTopics(topics map[string]*topicLine) []*topicLine {
	sorted := make([]*topicLine, 0, len(topics))
	for _, t := range topics {
		sorted = append(sorted, t)
	}
	slices.SortFunc(sorted, func(a, b *topicLine) int { return cmp.Compare(a.Topic, b.Topic) })
	return sorted
}

// noTopicError reports that there is no aggregate of a type.
type noTopicError struct {
	topic string
	err   error // error of the command; nil if it has found nothing
}

func (e *noTopicError) Error() string {
	text := fmt.Sprintf("there is no topic %q: the journal has no aggregate of that type", e.topic)
	if e.err != nil {
		text = e.err.Error() + "; " + text
	}
	return text
}

func (e *noTopicError) Unwrap() error { return e.err }

// aboutTopic wraps commands whose argument with that index, if it is set, is a topic. If a command
// does not find a group or an aggregate, aboutTopic checks whether the topic exists.
func (a *app) aboutTopic(index int, run func(cmd *cobra.Command, args []string) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		err := run(cmd, args)
		if len(args) <= index || !errors.Is(err, groups.ErrNoGroup) && !errors.Is(err, journal.ErrNotFound) {
			return err
		}
		return a.orNoTopic(cmd.Context(), args[index], err)
	}
}

// orNoTopic returns a noTopicError if there is no such topic, and else the error of the command.
func (a *app) orNoTopic(ctx context.Context, topic string, err error) error {
	j, failed := a.open(ctx)
	if failed != nil {
		return err
	}
	if exists, failed := hasTopic(ctx, j, topic); failed != nil || exists {
		return err
	}
	return &noTopicError{topic, err}
}

// hasTopic reports whether there is an aggregate of a type. It reads one event of each shard, at
// half a read unit. If there is none it reads heads, since all events may have been removed.
func hasTopic(ctx context.Context, j *journal.Journal, topic string) (bool, error) {
	log := j.Internal()
	for number := range j.Shards() {
		page, err := log.TailShard(ctx, storage.TailQuery{AggregateType: topic, Shard: number, NumbersOnly: true, Limit: 1})
		if err != nil || len(page.Records)+len(page.Corrupt) > 0 {
			return true, err
		}
	}
	corrupt := false
	for _, err := range j.Heads(ctx, journal.HeadsQuery{AggregateType: topic, Corrupt: func(*journal.CorruptItemError) { corrupt = true }}) {
		return true, err
	}
	return corrupt, nil
}

// knownTopic returns a noTopicError if there is no aggregate of a type. It makes no requests if the
// type is empty, which means every type.
func knownTopic(ctx context.Context, j *journal.Journal, topic string) error {
	if topic == "" {
		return nil
	}
	exists, err := hasTopic(ctx, j, topic)
	if err == nil && !exists {
		err = &noTopicError{topic: topic}
	}
	return err
}

// advice explains where the name of a topic comes from.
func (e *noTopicError) advice() string {
	const name = "`millrace topics` lists all topics. A topic is an aggregate type: the name that the application passes to aggregate.Define."
	if strings.TrimSpace(e.topic) != e.topic {
		return "The name has spaces around it. " + name
	}
	return name
}
