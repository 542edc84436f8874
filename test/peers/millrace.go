package main

import (
	"context"
	"time"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/repository"
)

var (
	packed  = ofMillrace(journal.Packed)
	classic = ofMillrace(journal.Classic)
)

// document is the state that every store has: the text of the last event.
type document struct{ Text string }

type written struct{ Text string }

func (written) EventType() string   { return "written" }
func (e written) Apply(d *document) { d.Text = e.Text }

var documents = aggregate.Define[document]("document", written{})

// millrace is a layout of Millrace.
type millrace struct {
	*repository.Repository[document]
	snapshot bool // whether the next commit stores a snapshot
	known    map[string]repository.Aggregate[document]
}

func ofMillrace(layout journal.Layout) contender {
	return contender{
		name: string(layout), feed: true, snapshots: true,
		open: func(ctx context.Context, db database) (store, error) {
			j, err := openJournal(ctx, db, string(layout), layout)
			if err != nil {
				return nil, err
			}
			m := &millrace{known: map[string]repository.Aggregate[document]{}}
			m.Repository, err = repository.New(j, documents, repository.Config{
				Snapshots: func(repository.Commit) bool { return m.snapshot },
			})
			return m, err
		},
	}
}

// openJournal creates the tables of a journal, under names that begin with prefix.
func openJournal(ctx context.Context, db database, prefix string, layout journal.Layout) (*journal.Journal, error) {
	config := journal.Config{
		Shards: 16, Layout: layout,
		Tables: journal.Tables{Journal: prefix + "-journal", Snapshot: prefix + "-snapshot", Checkpoint: prefix + "-checkpoint"},
	}
	if err := journal.Create(ctx, db.client, config); err != nil {
		return nil, err
	}
	return journal.Open(ctx, db.client, config)
}

func (m *millrace) appendTo(ctx context.Context, id string, texts []string, snapshot bool) (time.Duration, error) {
	m.snapshot = snapshot
	doc, exists := m.known[id]
	start := time.Now()
	if !exists {
		var err error
		if doc, err = m.NewAggregate(id); err != nil {
			return 0, err
		}
	}
	events := make(aggregate.Events[document], len(texts))
	for i, text := range texts {
		events[i] = written{text}
	}
	doc, err := m.Save(ctx, doc, events)
	took := time.Since(start)
	m.known[id] = doc
	return took, err
}

func (m *millrace) load(ctx context.Context, id string) (loaded, error) {
	start := time.Now()
	doc, err := m.Load(ctx, id, repository.Eventually()) // as event-store-adapter loads
	took := time.Since(start)
	m.known[id] = doc
	return loaded{took: took, events: int(doc.Version), text: doc.State.Text}, err
}

func (m *millrace) command(ctx context.Context, id, text string) (time.Duration, error) {
	m.snapshot = false
	start := time.Now()
	_, err := m.Execute(ctx, id, func(document) (aggregate.Events[document], error) {
		return aggregate.Events[document]{written{text}}, nil
	})
	return time.Since(start), err
}
