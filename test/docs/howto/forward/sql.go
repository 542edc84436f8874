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

// FromPostgreSQL receives from a table, as a consumer group.
func FromPostgreSQL(db *stdsql.DB, group string, logger watermill.LoggerAdapter) (message.Subscriber, error) {
	return sql.NewSubscriber(db, sql.SubscriberConfig{
		ConsumerGroup: group, SchemaAdapter: sql.DefaultPostgreSQLSchema{}, OffsetsAdapter: sql.DefaultPostgreSQLOffsetsAdapter{},
		InitializeSchema: true,
	}, logger)
}
