// Package service puts the example together: orders that take commands, a consumer that tells the history
// what has happened to them, and the history that answers queries. Any number of processes may run
// it on the same tables.
package service

import (
	"context"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/millrace-dev/millrace/examples/orderhistory/history"
	"github.com/millrace-dev/millrace/examples/orderhistory/order"
	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/repository"
)

// DefaultPrefix begins the names of the tables.
const DefaultPrefix = "ftgo-"

// Config configures a [Service].
type Config struct {
	Prefix   string // of table names; default: DefaultPrefix
	TokenKey []byte // see history.Config
}

// Service is one process's part of the application.
type Service struct {
	Orders  *repository.Repository[order.Order]
	History *history.DAO
	Journal *journal.Journal
	client  *dynamodb.Client
	tables  []string
}

// Open makes the tables where they are missing, and opens them.
func Open(ctx context.Context, client *dynamodb.Client, config Config) (*Service, error) {
	if config.Prefix == "" {
		config.Prefix = DefaultPrefix
	}
	store := journal.Config{
		Tables: journal.Tables{
			Journal: config.Prefix + "journal", Snapshot: config.Prefix + "snapshot", Checkpoint: config.Prefix + "checkpoint",
		},
		Shards: 4, // of about 1,000 write units a second each; fixed once the tables are made
	}
	view := history.Config{Table: config.Prefix + "order-history", TokenKey: config.TokenKey}
	s := &Service{
		client:  client,
		History: history.NewDAO(client, view),
		tables:  []string{store.Tables.Journal, store.Tables.Snapshot, store.Tables.Checkpoint, view.Table},
	}
	if err := journal.Create(ctx, client, store); err != nil {
		return nil, err
	}
	if err := s.History.CreateTable(ctx); err != nil {
		return nil, fmt.Errorf("order history: %w", err)
	}
	var err error
	if s.Journal, err = journal.Open(ctx, client, store); err != nil {
		return nil, err
	}
	if s.Orders, err = repository.New(s.Journal, order.Definition, repository.Config{}); err != nil {
		return nil, err
	}
	return s, nil
}

// DropTables deletes the tables and all that is in them.
func (s *Service) DropTables(ctx context.Context) error {
	for _, table := range s.tables {
		if _, err := s.client.DeleteTable(ctx, &dynamodb.DeleteTableInput{TableName: &table}); err != nil {
			return fmt.Errorf("delete table %q: %w", table, err)
		}
	}
	return nil
}
