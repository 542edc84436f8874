package forward

import (
	stdsql "database/sql"

	"github.com/ThreeDotsLabs/watermill"
	"github.com/ThreeDotsLabs/watermill-sql/v3/pkg/sql"
	"github.com/ThreeDotsLabs/watermill/message"
)

// OverPostgreSQL publishes to a table.
func OverPostgreSQL(db *stdsql.DB, logger watermill.LoggerAdapter) (message.Publisher, error) {
	return sql.NewPublisher(db, sql.PublisherConfig{
		SchemaAdapter: sql.DefaultPostgreSQLSchema{}, AutoInitializeSchema: true,
	}, logger)
}
