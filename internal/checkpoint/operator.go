package checkpoint

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/cenkalti/backoff/v4"
)

// ErrNoGroup means that there is no roster.
var ErrNoGroup = errors.New("there is no such consumer group")

// ModifyRoster changes a roster. While others change it at the same time it tries again, after
// pauses that grow, for a minute.
func (s *Store) ModifyRoster(ctx context.Context, k Key, change func(Roster) (Roster, error)) (Roster, error) {
	wait := backoff.NewExponentialBackOff(
		backoff.WithInitialInterval(10*time.Millisecond), backoff.WithMaxInterval(time.Second), backoff.WithMaxElapsedTime(time.Minute))
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
		pause := wait.NextBackOff()
		if pause == backoff.Stop {
			return Roster{}, fmt.Errorf("%w again and again for a minute: try again", err)
		}
		select {
		case <-ctx.Done():
			return Roster{}, ctx.Err()
		case <-time.After(pause):
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
// those that it has to see. If the operator could not renew its lease before, the error has the
// reason too. Where the shard cannot be freed the edits stand all the same, and members take it as
// from a member that is dead.
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
	held, operator, err := s.joinOperator(ctx, k, number)
	if err != nil {
		return err
	}
	shard := Shard{Group: Group{Name: k.Group, Resets: held.Resets}, Topic: k.Topic, Number: number}
	keeps := func(r Roster) bool { return r.Resets == held.Resets && r.Owns(operator, number, held.Epochs[number]) }
	editing, stop := s.hold(ctx, k, held, operator, keeps)
	edited := edit(editing, shard, held)
	if errors.Is(context.Cause(editing), ErrFenced) && errors.Is(edited, context.Canceled) && ctx.Err() == nil {
		edited = ErrFenced // the edit was ended because the shard was lost, and not by the caller
	}
	unrenewed := stop()

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
	if unrenewed != nil {
		lost = fmt.Errorf("%w, as the operator could not renew its lease: %w", lost, unrenewed)
	}
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

// joinOperator makes an operator a member that owns a shard. The reply to an attempt may be lost,
// and the roster may change before the next attempt. So the operator looks for its own token first,
// and joins once. If the last attempt has no reply either, it leaves the roster again: else it
// would keep the shard from others until its lease expires, and forever in a group without members.
func (s *Store) joinOperator(ctx context.Context, k Key, number int) (held Roster, operator uint64, err error) {
	token, attempted := max(1, rand.Uint64()), false
	held, err = s.ModifyRoster(ctx, k, func(r Roster) (Roster, error) {
		var joined bool
		if operator, joined = r.WithToken(token); !joined {
			r, operator = r.Join(Member{Operator: true, Lease: operatorLease, Token: token, Beat: NextBeat(0, s.journal.Config().Now(), operatorLease)})
		}
		if !slices.Contains(r.Of(operator), number) {
			r = r.Take(operator, []int{number})
		}
		attempted = true
		return r, nil
	})
	if err != nil && attempted {
		s.withdrawOperator(ctx, k, token)
	}
	return held, operator, err
}

// errNotJoined ends a withdrawal that has nothing to do.
var errNotJoined = errors.New("the operator did not join")

// withdrawOperator takes an operator off the roster, also after the end of ctx. If it fails,
// members evict the operator when its lease has expired.
func (s *Store) withdrawOperator(ctx context.Context, k Key, token uint64) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), releaseTimeout)
	defer cancel()
	_, _ = s.ModifyRoster(ctx, k, func(r Roster) (Roster, error) {
		operator, joined := r.WithToken(token)
		if !joined {
			return r, errNotJoined
		}
		return r.Leave(operator), nil
	})
}

// hold sends heartbeats of an operator until stop is called. The context ends when the shard turns
// out to be lost, with ErrFenced as its cause. Stop returns the error of the last heartbeat, nil if
// it was stored.
func (s *Store) hold(ctx context.Context, k Key, held Roster, operator uint64, keeps func(Roster) bool) (editing context.Context, stop func() error) {
	editing, cancel := context.WithCancelCause(ctx)
	var beating sync.WaitGroup
	var unrenewed error
	beating.Add(1)
	go func() {
		defer beating.Done()
		ticker := time.NewTicker(operatorLease / 4)
		defer ticker.Stop()
		for beat := held.Members[operator].Beat; ; {
			select {
			case <-editing.Done():
				return
			case <-ticker.C:
			}
			once, end := context.WithTimeout(editing, operatorLease/2) // one that hangs must not replace all that follow
			beat = NextBeat(beat, s.journal.Config().Now(), operatorLease)
			now, err := s.Beat(once, k, held, operator, beat)
			if once.Err() != nil && err != nil {
				err = fmt.Errorf("no reply to a heartbeat within %s", operatorLease/2)
			}
			end()
			switch {
			case errors.Is(err, ErrFenced), err == nil && !keeps(now):
				cancel(ErrFenced)
				return
			case editing.Err() == nil:
				unrenewed = err
			}
		}
	}()
	return editing, func() error {
		cancel(nil)
		beating.Wait()
		return unrenewed
	}
}
