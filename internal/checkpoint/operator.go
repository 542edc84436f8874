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

// ErrNoGroup means that there is no membership.
var ErrNoGroup = errors.New("there is no such consumer group")

// ModifyMembership changes a membership. While others change it at the same time it tries again, after
// pauses that grow, for a minute.
func (s *Store) ModifyMembership(ctx context.Context, k Key, change func(Membership) (Membership, error)) (Membership, error) {
	wait := backoff.NewExponentialBackOff(
		backoff.WithInitialInterval(10*time.Millisecond), backoff.WithMaxInterval(time.Second), backoff.WithMaxElapsedTime(time.Minute))
	for {
		seen, err := s.ReadMembership(ctx, k)
		if err == nil && !seen.Exists() {
			err = ErrNoGroup
		}
		if err != nil {
			return Membership{}, err
		}
		next, err := change(seen)
		if err != nil {
			return seen, err
		}
		now, err := s.ChangeMembership(ctx, k, seen, next)
		if !errors.Is(err, ErrMembershipChanged) {
			return now, err
		}
		pause := wait.NextBackOff()
		if pause == backoff.Stop {
			return Membership{}, fmt.Errorf("%w again and again for a minute: try again", err)
		}
		select {
		case <-ctx.Done():
			return Membership{}, ctx.Err()
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
func (s *Store) Operate(ctx context.Context, k Key, number int, edit func(context.Context, Shard, Membership) error) error {
	return s.operate(ctx, k, number, edit, func(r Membership) Membership { return r })
}

// Fence is Operate with an edit that fences the unfenced terms of the shard. The membership forgets
// them if the edit succeeds and the shard was kept.
func (s *Store) Fence(ctx context.Context, k Key, number int, edit func(context.Context, Shard, Membership) error) error {
	return s.operate(ctx, k, number, edit, func(r Membership) Membership { return r.Fenced(number) })
}

// operate changes the membership by done where the shard is freed after an edit that succeeded.
func (s *Store) operate(
	ctx context.Context, k Key, number int, edit func(context.Context, Shard, Membership) error, done func(Membership) Membership,
) error {
	held, operator, err := s.joinOperator(ctx, k, number)
	if err != nil {
		return err
	}
	shard := Shard{Group: Group{Name: k.Group, Resets: held.Resets}, Topic: k.Topic, Number: number}
	keeps := func(r Membership) bool {
		return r.Resets == held.Resets && r.Owns(operator, number, held.Epochs[number])
	}
	editing, stop := s.hold(ctx, k, held, operator, keeps)
	edited := edit(editing, shard, held)
	if errors.Is(context.Cause(editing), ErrFenced) && errors.Is(edited, context.Canceled) && ctx.Err() == nil {
		edited = ErrFenced // the edit was ended because the shard was lost, and not by the caller
	}
	unrenewed := stop()

	end, cancel := context.WithTimeout(context.WithoutCancel(ctx), releaseTimeout)
	defer cancel()
	var kept bool
	_, err = s.ModifyMembership(end, k, func(r Membership) (Membership, error) {
		// Once is enough, as all edits are done. It is not so any more where the membership is read
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
// and the membership may change before the next attempt. So the operator looks for its own token first,
// and joins once. If the last attempt has no reply either, it leaves the membership again: else it
// would keep the shard from others until its lease expires, and forever in a group without members.
func (s *Store) joinOperator(ctx context.Context, k Key, number int) (held Membership, operator uint64, err error) {
	token, attempted := max(1, rand.Uint64()), false
	held, err = s.ModifyMembership(ctx, k, func(r Membership) (Membership, error) {
		var joined bool
		if operator, joined = r.WithToken(token); !joined {
			r, operator = r.Join(Member{Operator: true, Lease: operatorLease, Token: token, Heartbeat: NextHeartbeat(0, s.journal.Config().Now(), operatorLease)})
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

// withdrawOperator takes an operator off the membership, also after the end of ctx. If it fails,
// members evict the operator when its lease has expired.
func (s *Store) withdrawOperator(ctx context.Context, k Key, token uint64) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), releaseTimeout)
	defer cancel()
	_, _ = s.ModifyMembership(ctx, k, func(r Membership) (Membership, error) {
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
func (s *Store) hold(ctx context.Context, k Key, held Membership, operator uint64, keeps func(Membership) bool) (editing context.Context, stop func() error) {
	editing, cancel := context.WithCancelCause(ctx)
	var heartbeats sync.WaitGroup
	var unrenewed error
	heartbeats.Add(1)
	go func() {
		defer heartbeats.Done()
		ticker := time.NewTicker(operatorLease / 4)
		defer ticker.Stop()
		for heartbeat := held.Members[operator].Heartbeat; ; {
			select {
			case <-editing.Done():
				return
			case <-ticker.C:
			}
			once, end := context.WithTimeout(editing, operatorLease/2) // one that hangs must not replace all that follow
			heartbeat = NextHeartbeat(heartbeat, s.journal.Config().Now(), operatorLease)
			now, err := s.Heartbeat(once, k, held, operator, heartbeat)
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
		heartbeats.Wait()
		return unrenewed
	}
}
