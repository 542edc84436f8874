package sim

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/subscriber/groups"
)

const (
	recordPrefix = "event/"
	recordSuffix = len("-0000000000000000")
	attrNumber   = "number"
)

// record records that an event was skipped.
type record struct {
	by *member
	at time.Duration
}

// recordWrite is the write of a record.
type recordWrite struct {
	stream
	number uint64
}

// recordWrites returns the records in a transaction.
func recordWrites(in any) (writes []recordWrite) {
	transaction, ok := in.(*dynamodb.TransactWriteItemsInput)
	if !ok {
		return nil
	}
	for _, item := range transaction.TransactItems {
		if put := item.Put; put != nil && isRecord(put) {
			partition := text(put.Item["pkey"])
			id := strings.TrimPrefix(text(put.Item["skey"]), recordPrefix)
			s := stream{groupOf(partition), topicOf(partition), id[:len(id)-recordSuffix]}
			writes = append(writes, recordWrite{s, number(put.Item[attrNumber])})
		}
	}
	return writes
}

func isRecord(put *types.Put) bool {
	return aws.ToString(put.TableName) == checkpointTable && strings.HasPrefix(text(put.Item["skey"]), recordPrefix)
}

// isHandling reports whether a transaction contains the effect of a projection.
func isHandling(in any) bool {
	transaction, ok := in.(*dynamodb.TransactWriteItemsInput)
	return ok && effectsIn(transaction) > 0
}

// effectsIn returns the number of events whose effects a transaction contains.
func effectsIn(in *dynamodb.TransactWriteItemsInput) (n uint64) {
	for _, item := range in.TransactItems {
		if u := item.Update; u != nil && aws.ToString(u.TableName) == effectsTable {
			n += number(u.ExpressionAttributeValues[":n"])
		}
	}
	return n
}

// record records that the database has stored the record of a skipped event.
func (o *oracle) record(m *member, s stream, number uint64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.trace.note("skip", m.name, s, number)
	h, _ := o.of(m, s)
	if m.group != "" && !o.skips[s.group] {
		o.finding(Passed, "%s skips %s #%d, which its policy does not allow", m.name, s, number)
	}
	h.skipped[number] = record{m, o.trace.now()}
}

// deliversSkipped checks whether a delivered event was skipped. The member that has skipped it
// knows that, even without the reply. Other members learn of it later.
func (o *oracle) deliversSkipped(m *member, s stream, h *history, number uint64) {
	r, ok := h.skipped[number]
	if ok && (r.by == m || m.born > r.at || o.trace.now() > r.at+m.notices) {
		o.finding(Passed, "%s hands out %s #%d, which %s has skipped at %v", m.name, s, number, r.by.name, r.at)
	}
}

// passOver records a transaction that moved a position and contained neither an effect nor a
// record.
func (o *oracle) passOver(m *member, s stream, number uint64) {
	o.find(Passed, "%s moves the position of %s to #%d, which was not handled, and keeps no record of it", m.name, s, number)
}

// inspectRecords compares the records that package groups returns with the recorded ones, and
// returns them.
func (w *world) inspectRecords(ctx context.Context) (map[stream][]uint64, error) {
	shown := map[stream][]uint64{}
	g := groups.New(w.journal)
	for _, group := range w.plan.groups {
		for _, topic := range w.plan.topics {
			for e, err := range g.Of(group.name, topic).Skipped(ctx, aggregate.ID{}, 0) {
				if errors.Is(err, groups.ErrNoGroup) {
					break
				}
				if err != nil {
					return nil, err
				}
				s := stream{group.name, topic, e.Aggregate.Value}
				shown[s] = append(shown[s], e.Number)
			}
		}
	}
	w.oracle.compareRecords(shown)
	return shown, nil
}

// compareRecords compares the records at the end with the recorded ones.
func (o *oracle) compareRecords(shown map[stream][]uint64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, s := range sorted(shown) {
		for _, number := range shown[s] {
			h := o.streams[s]
			if _, ok := o.skippedOf(s)[number]; !ok || number > h.position() {
				o.finding(Passed, "there is a record of %s #%d, which was not skipped", s, number)
			}
		}
	}
	for _, s := range sorted(o.streams) {
		if seen := len(o.skippedOf(s)); seen > len(shown[s]) {
			o.finding(Passed, "%d events of %s were skipped, and there are records of %d", seen, s, len(shown[s]))
		}
	}
}

func (o *oracle) skippedOf(s stream) map[uint64]record {
	if h := o.streams[s]; h != nil {
		return h.skipped
	}
	return nil
}
