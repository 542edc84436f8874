package checkpoint

import (
	"encoding/binary"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

func memberValue(m Member) types.AttributeValue {
	value := item{attrHeartbeat: number(m.Heartbeat)}
	if m.Lease > 0 {
		value[attrLease] = number(m.Lease.Milliseconds())
	}
	if m.Token > 0 {
		value[attrToken] = number(m.Token)
	}
	if m.Operator {
		value[attrOperator] = &types.AttributeValueMemberBOOL{Value: true}
	}
	if !m.Until.IsZero() {
		value[attrUntil] = number(m.Until.UnixMilli())
	}
	if m.Name != "" {
		value[attrName] = text(m.Name)
	}
	return &types.AttributeValueMemberM{Value: value}
}

func numbers(list []uint64) types.AttributeValue {
	value := &types.AttributeValueMemberL{Value: make([]types.AttributeValue, len(list))}
	for i, n := range list {
		value.Value[i] = number(n)
	}
	return value
}

// membershipOf decodes a row. It returns the zero value if there is no row.
func (s *Store) membershipOf(k Key, row item) (Membership, error) {
	if len(row) == 0 {
		return Membership{}, nil
	}
	r := Membership{Members: map[uint64]Member{}, id: textOf(row[attrID]), change: textOf(row[attrChange])}
	var errs []error
	uintOf := func(v types.AttributeValue) uint64 {
		n, err := uintOf(v)
		errs = append(errs, err)
		return n
	}
	r.Resets, r.Base, r.Joined = uintOf(row[attrResets]), uintOf(row[attrBase]), uintOf(row[attrJoined])
	r.Resumed = uintOf(row[attrResumed])
	var err error
	r.Start, err = timeOf(row[attrStart])
	errs = append(errs, err)
	r.Burst, err = timeOf(row[attrBurst])
	errs = append(errs, err)
	r.Rows, err = rowsOf(row[attrRows])
	errs = append(errs, err)
	r.Paused, r.ExternalPositions = isTrue(row[attrPaused]), isTrue(row[attrExternalPositions]) && r.Rows == nil
	r.NoReplay = isTrue(row[attrNoReplay])
	if why, ok := row[attrStopped].(*types.AttributeValueMemberM); ok {
		r.Stopped, err = stoppedOf(k.Topic, why.Value)
		errs = append(errs, err)
	}
	if handed, ok := row[attrHanded].(*types.AttributeValueMemberSS); ok {
		r.Handed = handed.Value
	}
	members, _ := row[attrMembers].(*types.AttributeValueMemberM)
	if members != nil {
		for name, value := range members.Value {
			m, err := strconv.ParseUint(name, 10, 64)
			state, ok := value.(*types.AttributeValueMemberM)
			if err != nil || !ok {
				errs = append(errs, fmt.Errorf("%w: member %q", ErrCorrupt, name))
				continue
			}
			until, err := timeOf(state.Value[attrUntil])
			errs = append(errs, err)
			r.Members[m] = Member{
				Heartbeat: uintOf(state.Value[attrHeartbeat]), Operator: isTrue(state.Value[attrOperator]),
				Lease: time.Duration(uintOf(state.Value[attrLease])) * time.Millisecond, Token: uintOf(state.Value[attrToken]),
				Name: textOf(state.Value[attrName]), Until: until,
			}
		}
	}
	for _, list := range []struct {
		name string
		into *[]uint64
	}{{attrOwners, &r.Owners}, {attrEpochs, &r.Epochs}} {
		if value, ok := row[list.name].(*types.AttributeValueMemberL); ok {
			for _, n := range value.Value {
				*list.into = append(*list.into, uintOf(n))
			}
		}
	}
	r.Unfenced, err = termsOf(row[attrUnfenced], s.journal.Config.Shards)
	errs = append(errs, err)
	r.Ended, err = endedOf(row[attrEnded])
	errs = append(errs, err)
	if shards := s.journal.Config.Shards; r.change == "" || len(r.Owners) != shards || len(r.Epochs) != shards {
		errs = append(errs, fmt.Errorf("%w: it has owners for %d shards and epochs for %d, but the journal has %d shards", ErrCorrupt, len(r.Owners), len(r.Epochs), shards))
	}
	if err := errors.Join(errs...); err != nil {
		return Membership{}, fmt.Errorf("membership of %s in table %q: %w", k.partition(), s.table, err)
	}
	return r, nil
}

// termsValue encodes three numbers for each term as varints. They mostly take four bytes, where a
// list of numbers would take ten. The row is written with every heartbeat, so its size matters.
func termsValue(terms []Term) types.AttributeValue {
	var value []byte
	for _, t := range terms {
		value = binary.AppendUvarint(value, uint64(t.Shard))
		value = binary.AppendUvarint(value, t.Epoch)
		value = binary.AppendUvarint(value, t.Member)
	}
	return &types.AttributeValueMemberB{Value: value}
}

func termsOf(v types.AttributeValue, shards int) (terms []Term, err error) {
	b, _ := v.(*types.AttributeValueMemberB)
	if b == nil {
		return nil, nil
	}
	for rest := b.Value; len(rest) > 0; {
		var numbers [3]uint64
		for i := range numbers {
			n, size := binary.Uvarint(rest)
			if size <= 0 {
				return nil, fmt.Errorf("%w: its unfenced terms are %x", ErrCorrupt, b.Value)
			}
			numbers[i], rest = n, rest[size:]
		}
		if numbers[0] >= uint64(shards) {
			return nil, fmt.Errorf("%w: it has an unfenced term of shard %d, but the journal has %d shards", ErrCorrupt, numbers[0], shards)
		}
		terms = append(terms, Term{Shard: int(numbers[0]), Epoch: numbers[1], Member: numbers[2]})
	}
	return terms, nil
}

func isTrue(v types.AttributeValue) bool {
	b, ok := v.(*types.AttributeValueMemberBOOL)
	return ok && b.Value
}
