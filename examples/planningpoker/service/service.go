// Package service wires the example on a millrace.App: the repository of rooms, the projection that
// keeps the view up to date, the feed that notifies browsers of changes, and the server. Any number
// of processes may run it on the same tables.
package service

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/ThreeDotsLabs/watermill"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/millrace-dev/millrace"
	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/examples/planningpoker/history"
	"github.com/millrace-dev/millrace/examples/planningpoker/room"
	"github.com/millrace-dev/millrace/examples/planningpoker/view"
	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/projection"
	"github.com/millrace-dev/millrace/repository"
	"github.com/millrace-dev/millrace/subscriber"
)

// ViewGroup is the consumer group of the view. A group with another name would be a new group, and
// begin with the first event.
const ViewGroup = "room-view"

// cached is the number of rooms that a process caches, so that a command takes one round trip while
// no other process writes.
const cached = 10_000

// Pages are live, so the journal is polled more often than by default. This costs at most about 40
// read units per second for each process, group and four shards. If the live read misses an event,
// a trailing read finds it after 0.5 seconds or after trailingDelay, which must be longer than
// clock differences and index delay together.
const (
	pollInterval    = 50 * time.Millisecond
	maxPollInterval = 200 * time.Millisecond
	trailingDelay   = 4 * time.Second
)

// Config configures a [Service] and a [Server]. The zero value serves on any free port of this
// machine.
type Config struct {
	Prefix string // prefix of the names of tables; default: none
	// Of the tables of events. Default: journal.Packed.
	Layout journal.Layout
	Now    func() time.Time // default: time.Now
	// As in millrace.Config, with shorter default intervals.
	Subscriber func(group string, c *subscriber.Config)
	Logger     *slog.Logger // default: slog.Default()
	Address    string       // to listen on; default: 127.0.0.1:0
	// SecureCookie makes browsers send the cookie over HTTPS only. Use it behind a proxy that
	// terminates TLS.
	SecureCookie bool
	// The host name of a proxy in front, if Address is a loopback address.
	Host string
}

func (c *Config) setDefaults() {
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Logger == nil {
		c.Logger = slog.Default()
	}
	c.Layout = cmp.Or(c.Layout, journal.Packed)
	c.Address = cmp.Or(c.Address, "127.0.0.1:0")
}

func (c *Config) subscriber(group string, s *subscriber.Config) {
	s.Timing.PollInterval, s.Timing.MaxPollInterval, s.Timing.TrailingDelay = pollInterval, maxPollInterval, trailingDelay
	if c.Subscriber != nil {
		c.Subscriber(group, s)
	}
}

// Service is one process of the application. It can execute commands as soon as it is open. The
// projection and the server run while its App runs: see [Service.Consume] and [Service.Listen].
type Service struct {
	*millrace.App
	Rooms  *repository.Repository[room.Room]
	View   *view.DAO
	config Config
	tables []string
}

// Open creates the tables that are missing, and opens them: Operation is the journal, and Room is
// the view.
func Open(ctx context.Context, client journal.Client, config Config) (*Service, error) {
	config.setDefaults()
	tables := journal.Tables{
		Journal: config.Prefix + "Operation", Snapshot: config.Prefix + "OperationSnapshot", Checkpoint: config.Prefix + "OperationCheckpoint",
	}
	app, err := millrace.Open(ctx, client, millrace.Config{
		Journal: journal.Config{
			Tables: tables, Layout: config.Layout, RetryBudget: trailingDelay / 2,
			// Each shard takes about 1,000 write units a second. Their number never changes.
			Shards: 4,
		},
		Subscriber: config.subscriber, Logger: watermill.NewSlogLogger(config.Logger),
	})
	if err != nil {
		return nil, err
	}
	rooms := config.Prefix + "Room"
	s := &Service{
		App: app, View: view.NewDAO(client, rooms, config.Now), config: config,
		tables: []string{tables.Journal, tables.Snapshot, tables.Checkpoint, rooms},
	}
	if err := s.View.CreateTable(ctx); err != nil {
		return nil, err
	}
	s.Rooms, err = millrace.Repository(app, room.Definition, repository.Config{Cache: cached, SnapshotSchema: room.Schema})
	return s, err
}

// Consume adds the projection that updates the view from the events of the rooms. Processes with
// the same group share the logical shards of the journal.
func (s *Service) Consume(group string) (*projection.Projection, error) {
	return s.Project(millrace.Group{Name: group, Topics: []string{room.Definition.Type()}}, s.View.Reactions()...)
}

// WaitShown waits until queries show an event of a room. Errors: those of groups.Groups.WaitApplied
// and view.DAO.WaitConsistent.
func (s *Service) WaitShown(ctx context.Context, roomID string, version uint64) error {
	id := aggregate.ID{Type: room.Definition.Type(), Value: roomID}
	if err := s.Groups().WaitApplied(ctx, ViewGroup, id, version); err != nil {
		return err
	}
	return s.View.WaitConsistent(ctx, roomID, version)
}

// History returns the newest rounds of a room before the given round, or the newest of all for 0.
// See [history.Read].
func (s *Service) History(ctx context.Context, roomID string, before int) ([]history.Round, error) {
	return history.Read(ctx, s.Journal(), roomID, before)
}

// Ready returns nil if commands and queries work: the App runs and the tables can be read. The
// metrics show the lag of the view.
func (s *Service) Ready(ctx context.Context) error {
	if err := s.App.Ready(ctx); err != nil {
		return err
	}
	const nobody = "nobody"
	if _, err := s.Rooms.Load(ctx, nobody); !errors.Is(err, journal.ErrNotFound) {
		return fmt.Errorf("load a room: %w", err)
	}
	_, err := s.View.ExistRoom(ctx, nobody)
	return err
}

// DropTables deletes the tables with their items.
func (s *Service) DropTables(ctx context.Context, client *dynamodb.Client) error {
	for _, table := range s.tables {
		if _, err := client.DeleteTable(ctx, &dynamodb.DeleteTableInput{TableName: &table}); err != nil {
			return fmt.Errorf("delete table %q: %w", table, err)
		}
	}
	return nil
}
