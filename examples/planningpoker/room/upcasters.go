package room

import (
	"time"

	"github.com/millrace-dev/millrace/aggregate"
)

// Rounds had no stories when these events were stored. They are read as current events with an
// empty title. The current events have new names, so that a program that does not know titles fails
// on them instead of losing titles.
type (
	openedV1 struct {
		Name      string    `json:"name"`
		Deck      []string  `json:"deck"`
		ExpiresAt time.Time `json:"expiresAt"`
	}
	tableRefreshedV1 struct {
		UserIDs []string `json:"userIds"`
	}
)

var upcasters = []aggregate.Upcaster{
	aggregate.Upcast("room.opened.v1", func(old openedV1) Opened {
		return Opened{Name: old.Name, Deck: old.Deck, ExpiresAt: old.ExpiresAt}
	}),
	aggregate.Upcast("room.table-refreshed.v1", func(old tableRefreshedV1) TableRefreshed {
		return TableRefreshed{UserIDs: old.UserIDs}
	}),
}
