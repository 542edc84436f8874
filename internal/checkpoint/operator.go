package checkpoint

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/millrace-dev/millrace/internal/retry"
)

// ErrNoGroup reports that a group has no membership row.
var ErrNoGroup = errors.New("there is no such consumer group")

// ModifyMembership changes a membership. If others change it at the same time, it tries again after
// growing pauses, for up to a minute.
func (s *Store) ModifyMembership(ctx context.Context, k Key, change func(Membership) (Membership, error)) (Membership, error) {
	wait := retry.Pauses(10*time.Millisecond, time.Second, time.Minute)
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
		if !retry.Sleep(ctx, wait.NextBackOff()) {
			return Membership{}, cmp.Or(ctx.Err(), fmt.Errorf("%w again and again for a minute: try again", err))
		}
	}
}

// releaseTimeout is the limit for the write that frees an operator's shard. That write is also made
// after the end of the caller's context.
const releaseTimeout = 5 * time.Second

// operatorLease is the lease of an operator. An operator sends a heartbeat every quarter of it, so
// a short edit sends none.
const operatorLease = 10 * time.Second

// Operate takes a shard from its owner, calls edit to change rows under the new epoch, and frees
// the shard. The former owner notices with its next heartbeat, or with its next write of an edited
// row. The next owner reads the edited rows. The edit may take as long as it needs, because the
// operator sends heartbeats meanwhile. The context of the edit ends when the shard is lost.
//
// ErrFenced, alone or joined with the error of the edit, reports that another member took the shard
// before the edit was finished. The next owner may have read all, some or none of the edited rows,
// so repeat the edits that it must read. If the operator could not renew its lease before, the
// error also contains the reason. If the shard cannot be freed, the edits stay valid, and members
// take the shard after the lease.
func (s *Store) Operate(ctx context.Context, k Key, number int, edit func(context.Context, Shard, Membership) error) error {
	return s.operate(ctx, k, number, edit, func(r Membership) Membership { return r })
}

// Fence is Operate for an edit that fences the unfenced terms of the shard. If the edit succeeds
// and the shard was kept, Fence also removes these terms from the membership.
func (s *Store) Fence(ctx context.Context, k Key, number int, edit func(context.Context, Shard, Membership) error) error {
	return s.operate(ctx, k, number, edit, func(r Membership) Membership { return r.WithoutUnfenced(number) })
}

// operate is Operate, and applies done to the membership when it frees the shard after an edit that
// succeeded.
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
		edited = ErrFenced // the loss of the shard ended the edit, not the caller
	}
	unrenewed := stop()

	end, cancel := context.WithTimeout(context.WithoutCancel(ctx), releaseTimeout)
	defer cancel()
	var kept bool
	_, err = s.ModifyMembership(end, k, func(r Membership) (Membership, error) {
		// It is enough to have owned the shard once after the edits. If the reply to this change is
		// lost, a later call reads a membership that is already changed.
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
		return fmt.Errorf("find out whether shard %d was kept while its rows were edited: %w", number, err)
	case edited != nil && !errors.Is(edited, ErrFenced):
		return fmt.Errorf("%w: %w", lost, edited)
	default:
		return lost
	}
}

// joinOperator makes an operator a member that owns a shard. The reply to an attempt may be lost,
// and the membership may change before the next attempt. So each attempt searches for the
// operator's token before it joins, and the operator joins only once. If the last attempt has no
// reply either, the operator leaves again. Otherwise it would keep the shard from others until its
// lease expires, and forever in a group without members.
func (s *Store) joinOperator(ctx context.Context, k Key, number int) (held Membership, operator uint64, err error) {
	token, attempted := max(1, rand.Uint64()), false
	held, err = s.ModifyMembership(ctx, k, func(r Membership) (Membership, error) {
		var joined bool
		if operator, joined = r.WithToken(token); !joined {
			r, operator = r.Join(Member{Operator: true, Lease: operatorLease, Token: token, Heartbeat: NextHeartbeat(0, s.journal.Config.Now(), operatorLease)})
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

// errNotJoined reports that there is nothing to withdraw.
var errNotJoined = errors.New("the operator did not join")

// withdrawOperator removes an operator from the membership, even after the end of ctx. If that
// fails, members evict the operator when its lease has expired.
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

// hold sends heartbeats of an operator until stop is called. The returned context ends with the
// cause ErrFenced if the shard is lost. stop returns the error of the last heartbeat, or nil if it
// was stored.
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
			// A request that hangs must not delay all later heartbeats.
			once, end := context.WithTimeout(editing, operatorLease/2)
			heartbeat = NextHeartbeat(heartbeat, s.journal.Config.Now(), operatorLease)
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
