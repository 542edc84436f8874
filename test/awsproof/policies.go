package awsproof

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/internal/permissions"
	"github.com/millrace-dev/millrace/journal"
)

// policies runs programs with the permissions of permissions.md: those that have them must succeed,
// and others must be refused.
func (p *proof) policies(ctx context.Context) (string, error) {
	if p.Assume == nil {
		return "Not checked: no role can be assumed. Name one with -role.\n", nil
	}
	owner, err := p.journal(ctx, journal.Packed)
	if err != nil {
		return "", err
	}
	const topic = "permitted"
	repo, err := notesOf(owner, topic)
	if err != nil {
		return "", err
	}
	programs := map[string]func(j *journal.Journal, id string) error{
		"Load": func(j *journal.Journal, id string) error {
			limited, err := notesOf(j, topic)
			if err == nil {
				_, err = limited.Load(ctx, id)
			}
			return err
		},
		"Execute, Save": func(j *journal.Journal, id string) error {
			limited, err := notesOf(j, topic)
			if err == nil {
				_, err = limited.Execute(ctx, id, note(""))
			}
			return err
		},
		"Truncate, Delete": func(j *journal.Journal, id string) error {
			return j.Delete(ctx, aggregate.ID{Type: topic, Value: id}, 1, journal.RemoveOptions{})
		},
	}
	var b strings.Builder
	var all error
	b.WriteString("| permissions of | program | result |\n|---|---|---|\n")
	for n, c := range []struct {
		of, program string
		allowed     bool
	}{
		{"Load", "Load", true},
		{"Load", "Execute, Save", false},
		{"Load", "Truncate, Delete", false},
		{"Execute, Save", "Execute, Save", true},
		{"Execute, Save", "Truncate, Delete", false},
		{"Truncate, Delete", "Truncate, Delete", true},
	} {
		id := fmt.Sprint("limited-", n)
		if _, err := repo.Execute(ctx, id, note("")); err != nil {
			return b.String(), err
		}
		j, err := p.limited(ctx, c.of)
		if err != nil {
			return b.String(), fmt.Errorf("with the permissions of %q: %w", c.of, err)
		}
		err = programs[c.program](j, id)
		result := "succeeded"
		switch {
		case errors.Is(err, journal.ErrAccess):
			result = "refused"
		case err != nil:
			return b.String(), err
		}
		if c.allowed != (err == nil) {
			result = "**" + result + "**"
			all = errors.Join(all, fmt.Errorf("with the permissions of %q, %q %s: %w", c.of, c.program, result, err))
		}
		fmt.Fprintf(&b, "| %s | %s | %s |\n", c.of, c.program, result)
	}
	return b.String(), all
}

// limited opens the journal with the permissions of a program.
func (p *proof) limited(ctx context.Context, program string) (*journal.Journal, error) {
	policy, err := p.policy(program)
	if err != nil {
		return nil, err
	}
	client, err := p.Assume(ctx, policy)
	if err != nil {
		return nil, err
	}
	return journal.Open(ctx, p.meter.client(client), p.journalConfig(journal.Packed))
}

// policy returns the permissions of a program on the tables of the packed layout.
func (p *proof) policy(program string) (string, error) {
	type statement struct{ Effect, Action, Resource any }
	var statements []statement
	tables := tablesOf(p.prefix, journal.Packed)
	set := permissions.Of(journal.Packed, "journal.Open", program)
	for _, resource := range set.Resources() {
		table := map[permissions.Resource]string{
			permissions.Journal: tables.Journal, permissions.Snapshot: tables.Snapshot, permissions.Checkpoint: tables.Checkpoint,
		}[resource.Table()]
		arn := fmt.Sprintf("arn:%s:dynamodb:%s:%s:table/%s", p.Partition, p.Region, p.Account, table)
		if resource != resource.Table() {
			arn += "/index/*"
		}
		var actions []string
		for _, action := range set[resource] {
			actions = append(actions, "dynamodb:"+action)
		}
		statements = append(statements, statement{"Allow", actions, arn})
	}
	text, err := json.Marshal(map[string]any{"Version": "2012-10-17", "Statement": statements})
	return string(text), err
}
