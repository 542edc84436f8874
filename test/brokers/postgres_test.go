package brokers

import (
	"context"
	"encoding/json"
	"errors"
	"testing"
	"time"

	"github.com/ThreeDotsLabs/watermill"
	"github.com/ThreeDotsLabs/watermill-sql/v3/pkg/sql"
	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/test/docs/howto/forward"
	"github.com/millrace-dev/millrace/test/internal/postgres"
)

// database is a PostgreSQL with a table of messages.
type database struct {
	t      *testing.T
	server *postgres.Server
	table  string
}

func newPostgres(t *testing.T) broker {
	server, err := postgres.Start(context.WithoutCancel(t.Context()))
	if errors.Is(err, postgres.ErrNone) {
		t.Skip("needs PostgreSQL")
	}
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, server.Stop()) })
	pub, err := forward.OverPostgreSQL(server.DB, watermill.NopLogger{})
	require.NoError(t, err)
	require.NoError(t, pub.Publish("orders", message.NewMessage("first", []byte(`{}`))), "it creates the table")
	b := &database{t: t, server: server, table: sql.DefaultPostgreSQLSchema{}.MessagesTable("orders")}
	_, err = server.DB.ExecContext(t.Context(), "DELETE FROM "+b.table)
	require.NoError(t, err)
	return b
}

func (b *database) address() string { return b.server.Name }

// outage ends all sessions again and again.
func (b *database) outage(d time.Duration) {
	for end := time.Now().Add(d); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		_, err := b.server.DB.ExecContext(b.t.Context(), "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()")
		require.NoError(b.t, err)
	}
}

func (b *database) all() (all []*message.Message) {
	rows, err := b.server.DB.QueryContext(b.t.Context(), `SELECT uuid, payload, metadata FROM `+b.table+` ORDER BY "offset"`)
	require.NoError(b.t, err)
	defer func() { assert.NoError(b.t, rows.Close()) }()
	for rows.Next() {
		var id string
		var payload, metadata []byte
		require.NoError(b.t, rows.Scan(&id, &payload, &metadata))
		msg := message.NewMessage(id, payload)
		require.NoError(b.t, json.Unmarshal(metadata, &msg.Metadata))
		all = append(all, msg)
	}
	require.NoError(b.t, rows.Err())
	return all
}
