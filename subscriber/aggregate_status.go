package subscriber

import "github.com/millrace-dev/millrace/aggregate"

// AggregateStatus is what a [Subscriber] knows of an aggregate in a shard that it owns.
type AggregateStatus struct {
	// Handled is the number of the last event that was acked, 0 if that is not known yet. Its
	// position may not be stored yet ([Timing.CommitInterval]).
	Handled uint64
	// Reason is the error of the last failed attempt at the next event, and the number of attempts,
	// such as "connection refused, 3 times". It is empty if no attempt has failed, and if the
	// aggregate is parked. Limit: 300 bytes.
	Reason string
	// Parked reports that the group no longer tries the next event ([Park]). The reason is in the
	// group's list, see groups.Group.Parked.
	Parked bool
}

// Aggregate returns what the subscriber knows of an aggregate, without a request. It returns false
// if another member owns the shard, if no event of the aggregate was found in this term, or if the
// aggregate was forgotten ([Config.StateBytes]). Then package groups reads the stored position.
func (sub *Subscriber) Aggregate(id aggregate.ID) (status AggregateStatus, known bool) {
	sub.mu.Lock()
	defer sub.mu.Unlock()
	for s := range sub.subscriptions {
		if s.topic != id.Type {
			continue
		}
		sh, owned := s.member.Work(s.journal.Shard(id))
		if !owned {
			continue
		}
		of, inMemory := sh.sequencer.StatusOf(id)
		if !inMemory {
			continue
		}
		status = AggregateStatus{Handled: max(status.Handled, of.Acked), Parked: of.Parked}
		if f := of.Failure; f != nil {
			status.Reason = f.Reason
		}
		known = true
	}
	return status, known
}
