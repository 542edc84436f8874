package sqlprojection_test

import (
	"database/sql"
	"fmt"

	"github.com/millrace-dev/millrace/projection/sqlprojection"
)

// A program that creates its tables by migrations uses this statement for the table of positions.
func ExampleStore_Schema() {
	// A program opens its database with sql.Open.
	db := new(sql.DB)

	store, err := sqlprojection.New(db, sqlprojection.Config{Dialect: sqlprojection.PostgreSQL})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(store.Schema())

	// Output:
	// CREATE TABLE IF NOT EXISTS millrace_positions (
	// 	consumer_group TEXT NOT NULL,
	// 	generation     BIGINT NOT NULL,
	// 	aggregate_type TEXT NOT NULL,
	// 	aggregate_id   TEXT NOT NULL,
	// 	epoch          BIGINT NOT NULL,
	// 	position       BIGINT,
	// 	PRIMARY KEY (consumer_group, generation, aggregate_type, aggregate_id)
	// )
}
