// Package service puts the example together: rooms that take commands, a consumer that tells the
// view what has happened in them, a feed that tells browsers when the view has changed, and a
// server for all of it. Any number of processes may run it on the same tables.
package service

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/ThreeDotsLabs/watermill"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/examples/planningpoker/history"
	"github.com/millrace-dev/millrace/examples/planningpoker/room"
	"github.com/millrace-dev/millrace/examples/planningpoker/view"
	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/live"
	"github.com/millrace-dev/millrace/repository"
	"github.com/millrace-dev/millrace/subscriber"
	"github.com/millrace-dev/millrace/subscriber/groups"
)

// cached is how many rooms a process remembers, so that a command takes one round trip while no
// other process writes.
const cached = 10_000

// Config configures a [Service].
type Config struct {
	Prefix string           // of the names of tables; default: none
	Layout journal.Layout   // of the tables of events; default: journal.Classic
	Now    func() time.Time // default: time.Now
}

// Service is one process's part of the application.
type Service struct {
	Rooms   *repository.Repository[room.Room]
	View    *view.DAO
	Journal *journal.Journal
	groups  *groups.Groups
	client  journal.Client
	now     func() time.Time
	tables  []string
}

// Open makes the tables where they are missing, and opens them: Operation is the journal, which is
// kept for good, and Room the view.
func Open(ctx context.Context, client journal.Client, config Config) (*Service, error) {
	if config.Now == nil {
		config.Now = time.Now
	}
	store := journal.Config{
		Tables: journal.Tables{
			Journal: config.Prefix + "Operation", Snapshot: config.Prefix + "OperationSnapshot", Checkpoint: config.Prefix + "OperationCheckpoint",
		},
		Shards:      4, // of about 1,000 write units a second each; fixed once the tables are made
		Layout:      config.Layout,
		RetryBudget: trailingDelay / 2,
	}
	rooms := config.Prefix + "Room"
	s := &Service{
		View: view.NewDAO(client, rooms, config.Now), client: client, now: config.Now,
		tables: []string{store.Tables.Journal, store.Tables.Snapshot, store.Tables.Checkpoint, rooms},
	}
	if err := journal.Create(ctx, client, store); err != nil {
		return nil, err
	}
	if err := s.View.CreateTable(ctx); err != nil {
		return nil, err
	}
	var err error
	if s.Journal, err = journal.Open(ctx, client, store); err != nil {
		return nil, err
	}
	if s.Rooms, err = repository.New(s.Journal, room.Definition, repository.Config{Cache: cached, SnapshotSchema: room.Schema}); err != nil {
		return nil, err
	}
	s.groups = groups.New(s.Journal)
	return s, nil
}

// NewFeed makes a feed of the rooms that change, for one process among those that serve them.
func (s *Service) NewFeed(logger watermill.LoggerAdapter) (*live.Feed, error) {
	return live.New(live.Config{
		Journal: s.Journal, Group: ViewGroup, Topics: []string{room.Definition.Type()}, Logger: logger,
		Key: func(ctx context.Context, r *journal.Record) (string, error) {
			_ = s.View.Settle(ctx, r.Aggregate.Value, r.Number) // who is told too early looks again after a while
			return r.Aggregate.Value, nil
		},
		Hint:       func(r *journal.Record) string { return r.Aggregate.Value },
		Subscriber: prompt(subscriber.Config{}),
	})
}

// Wait waits until queries show an event of a room. Errors: those of groups.Groups.WaitApplied and
// view.DAO.Settle.
func (s *Service) Wait(ctx context.Context, roomID string, version uint64) error {
	id := aggregate.ID{Type: room.Definition.Type(), Value: roomID}
	if err := s.groups.WaitApplied(ctx, ViewGroup, id, version); err != nil {
		return err
	}
	return s.View.Settle(ctx, roomID, version)
}

// History returns the newest rounds of a room before a round, or of all for 0. See [history.Read].
func (s *Service) History(ctx context.Context, roomID string, before int) ([]history.Round, error) {
	return history.Read(ctx, s.Journal, roomID, before)
}

// Ready reports whether the tables answer.
func (s *Service) Ready(ctx context.Context) error {
	const nobody = "nobody"
	if _, err := s.View.ExistRoom(ctx, nobody); err != nil {
		return err
	}
	if _, err := s.Rooms.Load(ctx, nobody); !errors.Is(err, journal.ErrNotFound) {
		return fmt.Errorf("journal: %w", err)
	}
	return nil
}

// DropTables deletes the tables and all that is in them. It takes a client that can.
func (s *Service) DropTables(ctx context.Context, client *dynamodb.Client) error {
	for _, table := range s.tables {
		if _, err := client.DeleteTable(ctx, &dynamodb.DeleteTableInput{TableName: &table}); err != nil {
			return fmt.Errorf("delete table %q: %w", table, err)
		}
	}
	return nil
}
