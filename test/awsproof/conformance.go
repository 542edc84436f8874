package awsproof

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/ThreeDotsLabs/watermill/message"

	"github.com/millrace-dev/millrace/internal/layoutcheck"
	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/subscriber"
)

var layouts = []journal.Layout{journal.Packed, journal.Classic}

// conformance runs the checks of package layoutcheck on both layouts, and two groups.
func (p *proof) conformance(ctx context.Context) (string, error) {
	type check struct {
		name string
		run  func(j *journal.Journal, topic string) error
	}
	var checks []check
	for _, c := range layoutcheck.Checks() {
		checks = append(checks, check{c.Name, func(j *journal.Journal, topic string) error {
			t := &checking{ctx: ctx}
			return t.run(func() { c.Run(t, j.Internal(), topic) })
		}})
	}
	checks = append(checks, check{"two groups receive everything in order", func(j *journal.Journal, topic string) error {
		return twoGroups(ctx, j, topic)
	}})
	rows := make([]string, len(checks))
	var all error
	for i, c := range checks {
		rows[i] = "| " + c.name
	}
	for _, layout := range layouts {
		j, err := p.journal(ctx, layout)
		if err != nil {
			return "", err
		}
		for i, c := range checks {
			result := "passed"
			if err := c.run(j, fmt.Sprint("check-", i)); err != nil {
				result = "**failed**"
				all = errors.Join(all, fmt.Errorf("%s, %s: %w", layout, c.name, err))
			}
			rows[i] += " | " + result
		}
	}
	return "| check | packed | classic |\n|---|---|---|\n" + strings.Join(rows, " |\n") + " |\n", all
}

// journal returns the journal in a layout, and creates its tables before the first use.
func (p *proof) journal(ctx context.Context, layout journal.Layout) (*journal.Journal, error) {
	if j := p.journals[layout]; j != nil {
		return j, nil
	}
	config := p.journalConfig(layout)
	if err := journal.Create(ctx, p.Client, config); err != nil {
		return nil, err
	}
	j, err := journal.Open(ctx, p.Client, config)
	p.journals[layout] = j
	return j, err
}

func (p *proof) journalConfig(layout journal.Layout) journal.Config {
	return journal.Config{Layout: layout, Shards: 16, Tables: tablesOf(p.prefix, layout)}
}

func tablesOf(prefix string, layout journal.Layout) journal.Tables {
	of := prefix + "-" + string(layout) + "-"
	return journal.Tables{Journal: of + "journal", Snapshot: of + "snapshot", Checkpoint: of + "checkpoint"}
}

func twoGroups(ctx context.Context, j *journal.Journal, topic string) error {
	const aggregates, each = 5, 4
	repo, err := notesOf(j, topic)
	if err != nil {
		return err
	}
	return together(ctx, 3, func(ctx context.Context, worker int) error {
		if worker < 2 {
			group := subscriber.Config{Journal: j, ConsumerGroup: fmt.Sprint("group-", worker)}
			_, err := receive(ctx, group, topic, aggregates*each, 2, func(*message.Message) error { return nil })
			return err
		}
		for k := range aggregates * each {
			if _, err := repo.Execute(ctx, fmt.Sprint(k%aggregates), note("")); err != nil {
				return err
			}
		}
		return nil
	})
}

// checking is the layoutcheck.T of a check.
type checking struct {
	ctx      context.Context
	failures []error
}

// errCheck ends a check.
var errCheck = errors.New("the check failed")

func (t *checking) run(check func()) (err error) {
	defer func() {
		if r := recover(); r != nil && r != any(errCheck) {
			panic(r)
		}
		err = errors.Join(t.failures...)
	}()
	check()
	return nil
}

func (t *checking) Errorf(format string, args ...any) {
	t.failures = append(t.failures, fmt.Errorf(format, args...))
}

func (t *checking) FailNow()                 { panic(errCheck) }
func (t *checking) Helper()                  {}
func (t *checking) Context() context.Context { return t.ctx }
