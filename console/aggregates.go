package console

import (
	"context"
	"errors"
	"time"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/journal"
)

// aggregatesPage is the number of aggregates on a page.
const aggregatesPage = 50

// aggregatesView is a page of the list of the aggregates of a type.
type aggregatesView struct {
	Type       string         `json:"type"`
	Aggregates []aggregateRow `json:"aggregates"`
	// Unreadable holds the errors of items that cannot be read as heads.
	Unreadable []string `json:"unreadable"`
	Next       string   `json:"next,omitempty"` // token of the next page
	First      bool     `json:"-"`
	topics     []string
}

// Topics returns the types to choose from if Type is empty.
func (v aggregatesView) Topics() []string { return v.topics }

func (v aggregatesView) title() string {
	if v.Type == "" {
		return "Aggregates"
	}
	return "Aggregates of type " + v.Type
}

type aggregateRow struct {
	aggregateRef
	Version         uint64     `json:"version"`
	Shard           int        `json:"shard"`
	TruncatedBefore uint64     `json:"truncated_before,omitempty"`
	DeletedAt       *time.Time `json:"deleted_at,omitempty"`
}

// aggregates lists the aggregates of a type in the order in which they are stored: by shard.
func (r *reading) aggregates(ctx context.Context) (any, error) {
	v := aggregatesView{Type: r.query.Get("type"), Aggregates: []aggregateRow{}, Unreadable: []string{}}
	if v.Type == "" {
		all, _, err := r.listGroups(ctx)
		v.topics = r.topicNames(all)
		return v, err
	}
	q := journal.HeadsQuery{
		AggregateType: v.Type, Limit: aggregatesPage + 1,
		Corrupt: func(err *journal.CorruptItemError) { v.Unreadable = append(v.Unreadable, err.Error()) },
	}
	purpose := "aggregates " + v.Type
	if token := r.query.Get("after"); token == "" {
		v.First = true
	} else {
		var after string
		if err := r.seal.open(purpose, token, &after); err != nil {
			return nil, err
		}
		q.After = aggregate.ID{Type: v.Type, Value: after}
	}
	if _, err := aggregate.NewID(v.Type, "x"); err != nil {
		return nil, err
	}
	for head, err := range r.config.Journal.Heads(ctx, q) {
		if err != nil {
			return nil, err
		}
		if n := len(v.Aggregates); n == aggregatesPage || n > 0 && r.spent() {
			v.Next = r.seal.seal(purpose, v.Aggregates[n-1].ID)
			break
		}
		v.Aggregates = append(v.Aggregates, aggregateRow{
			aggregateRef: refOf(head.Aggregate), Version: head.Version, Shard: r.shard(head.Aggregate),
			TruncatedBefore: head.TruncatedBefore, DeletedAt: optionalTime(head.DeletedAt),
		})
	}
	return v, nil
}

// headOf reads a head, with the snapshot as it is stored if it cannot be decoded.
func (r *reading) headOf(ctx context.Context, id aggregate.ID) (journal.Head, error) {
	head, err := r.config.Journal.Head(ctx, id)
	if errors.As(err, new(*journal.EncodingError)) || errors.Is(err, journal.ErrKeyDestroyed) {
		head, err = r.config.Journal.Raw().Head(ctx, id)
	}
	if errors.Is(err, journal.ErrNotFound) {
		return head, &missingError{"There is no aggregate of type " + id.Type + " with the id " + id.Value + "."}
	}
	return head, err
}
