package checkpoint

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/cenkalti/backoff/v4"
)

// ErrNoGroup means that there is no roster.
var ErrNoGroup = errors.New("there is no such consumer group")

// ModifyRoster changes a roster, again where others change it at the same time, after a pause that
// grows.
func (s *Store) ModifyRoster(ctx context.Context, k Key, change func(Roster) (Roster, error)) (Roster, error) {
	wait := backoff.NewExponentialBackOff(
		backoff.WithInitialInterval(10*time.Millisecond), backoff.WithMaxInterval(time.Second), backoff.WithMaxElapsedTime(0))
	for {
		seen, err := s.ReadRoster(ctx, k)
		if err == nil && !seen.Exists() {
			err = ErrNoGroup
		}
		if err != nil {
			return Roster{}, err
		}
		next, err := change(seen)
		if err != nil {
			return seen, err
		}
		now, err := s.ChangeRoster(ctx, k, seen, next)
		if !errors.Is(err, ErrRosterMoved) {
			return now, err
		}
		select {
		case <-ctx.Done():
			return Roster{}, ctx.Err()
		case <-time.After(wait.NextBackOff()):
		}
	}
}

// releaseTimeout bounds the write that frees an operator's shard, which is also made when the
// caller's context has ended.
const releaseTimeout = 5 * time.Second

// operatorLease is how long members wait for a heartbeat of an operator. It sends one every quarter
// of that, so a short edit sends none.
const operatorLease = 10 * time.Second

// Operate takes a shard from its owner, edits its rows under the new epoch, and frees it. The
// former owner notices with its next beat or write of an edited row; whoever takes the shard next
// reads the edited rows. The edit may take as long as it needs: the operator sends heartbeats
// meanwhile. Its context ends when the shard is lost.
//
// ErrFenced, also beside the edit's own error, means that the shard was taken from the operator
// before it had done, so that the next owner may have seen a part of the edits or none: do again
// those that it has to see. Where the shard cannot be freed the edits stand all the same, and
// members take it as from a member that is dead.
func (s *Store) Operate(ctx context.Context, k Key, number int, edit func(context.Context, Shard, Roster) error) error {
	return s.operate(ctx, k, number, edit, func(r Roster) Roster { return r })
}

// Fence is Operate with an edit that fences the unsettled terms of the shard. The roster forgets
// them if the edit succeeds and the shard was kept.
func (s *Store) Fence(ctx context.Context, k Key, number int, edit func(context.Context, Shard, Roster) error) error {
	return s.operate(ctx, k, number, edit, func(r Roster) Roster { return r.Fenced(number) })
}

// operate changes the roster by done where the shard is freed after an edit that succeeded.
func (s *Store) operate(
	ctx context.Context, k Key, number int, edit func(context.Context, Shard, Roster) error, done func(Roster) Roster,
) error {
	var operator uint64
	held, err := s.ModifyRoster(ctx, k, func(r Roster) (Roster, error) {
		r, operator = r.Join(Member{Operator: true, Lease: operatorLease})
		return r.Take(operator, []int{number}), nil
	})
	if err != nil {
		return err
	}
	shard := Shard{Group: Group{Name: k.Group, Resets: held.Resets}, Topic: k.Topic, Number: number}
	keeps := func(r Roster) bool { return r.Resets == held.Resets && r.Owns(operator, number, held.Epochs[number]) }
	editing, stop := s.hold(ctx, k, held, operator, keeps)
	edited := edit(editing, shard, held)
	stop()

	end, cancel := context.WithTimeout(context.WithoutCancel(ctx), releaseTimeout)
	defer cancel()
	var kept bool
	_, err = s.ModifyRoster(end, k, func(r Roster) (Roster, error) {
		// Once is enough, as all edits are done. It is not so any more where the roster is read
		// again after a lost reply.
		kept = kept || keeps(r)
		if edited == nil && keeps(r) {
			r = done(r)
		}
		return r.Leave(operator), nil
	})
	lost := fmt.Errorf("edit rows of shard %d: %w", number, ErrFenced)
	switch {
	case kept:
		return edited
	case err != nil && edited != nil:
		return edited
	case err != nil:
		return fmt.Errorf("tell whether shard %d was kept while its rows were edited: %w", number, err)
	case edited != nil && !errors.Is(edited, ErrFenced):
		return fmt.Errorf("%w: %w", lost, edited)
	default:
		return lost
	}
}

// hold sends heartbeats of an operator until stop is called. The context ends when the shard turns
// out to be lost.
func (s *Store) hold(ctx context.Context, k Key, held Roster, operator uint64, keeps func(Roster) bool) (editing context.Context, stop func()) {
	editing, cancel := context.WithCancel(ctx)
	var beating sync.WaitGroup
	beating.Add(1)
	go func() {
		defer beating.Done()
		ticker := time.NewTicker(operatorLease / 4)
		defer ticker.Stop()
		for beat := uint64(1); ; beat++ {
			select {
			case <-editing.Done():
				return
			case <-ticker.C:
			}
			now, err := s.Beat(editing, k, held, operator, beat)
			if errors.Is(err, ErrFenced) || err == nil && !keeps(now) {
				cancel()
				return
			}
		}
	}()
	return editing, func() {
		cancel()
		beating.Wait()
	}
}
