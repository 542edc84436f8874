package checkpoint

import (
	"context"
	"errors"
	"time"
)

// ErrNoGroup means that there is no roster.
var ErrNoGroup = errors.New("there is no such consumer group")

// ModifyRoster changes a roster, again where others change it at the same time.
func (s *Store) ModifyRoster(ctx context.Context, k Key, change func(Roster) (Roster, error)) (Roster, error) {
	seen, err := s.ReadRoster(ctx, k)
	for {
		if err == nil && !seen.Exists() {
			err = ErrNoGroup
		}
		if err != nil {
			return Roster{}, err
		}
		var next Roster
		if next, err = change(seen); err != nil {
			return seen, err
		}
		if seen, err = s.ChangeRoster(ctx, k, seen, next); !errors.Is(err, ErrRosterMoved) {
			return seen, err
		}
		err = ctx.Err()
	}
}

// Operate takes a shard from its owner, edits its rows under the new epoch, and frees it. The owner notices with its next beat or
// write; whoever takes the shard next reads the edited rows.
func (s *Store) Operate(ctx context.Context, k Key, number int, edit func(context.Context, Shard, uint64) error) (err error) {
	var operator uint64
	held, err := s.ModifyRoster(ctx, k, func(r Roster) (Roster, error) {
		r, operator = r.Join(Member{Operator: true})
		return r.Take(operator, []int{number}), nil
	})
	if err != nil {
		return err
	}
	defer func() {
		end, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
		defer cancel()
		_, released := s.ModifyRoster(end, k, func(r Roster) (Roster, error) { return r.Leave(operator), nil })
		if err == nil {
			err = released
		}
	}()
	shard := Shard{Group: Group{Name: k.Group, Generation: held.Generation}, Topic: k.Topic, Number: number}
	return edit(ctx, shard, held.Epochs[number])
}
