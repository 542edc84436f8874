package checkpoint

import (
	"context"
	"errors"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
)

// Lease is the right of one member of a group to tail a topic. The zero value, no
// owner, is a lease that nobody ever held.
type Lease struct {
	Owner string
	// Epoch rises with every owner.
	Epoch uint64
	// Beat rises while the owner lives. Others judge by their own clock for how long
	// it has not: no two clocks are compared.
	Beat uint64
}

// LeaseKey names a lease.
type LeaseKey struct{ Group, Topic string }

func (s *Store) leaseKey(k LeaseKey) item { return s.key(k.Group+"/"+k.Topic, "lease") }

// ReadLease reads a lease, strongly consistent.
func (s *Store) ReadLease(ctx context.Context, k LeaseKey) (Lease, error) {
	out, err := s.client.GetItem(ctx, &dynamodb.GetItemInput{
		TableName: &s.table, Key: s.leaseKey(k), ConsistentRead: aws.Bool(true),
	})
	if err != nil {
		return Lease{}, s.explain(err)
	}
	return leaseOf(out.Item), nil
}

// TakeLease makes owner the owner if the lease is still as seen. Otherwise it gives
// ErrFenced and the lease as it is.
func (s *Store) TakeLease(ctx context.Context, k LeaseKey, owner string, seen Lease) (Lease, error) {
	in := &dynamodb.UpdateItemInput{
		Key:                      s.leaseKey(k),
		UpdateExpression:         aws.String("SET #o = :o, #e = :next, #b = :zero"),
		ConditionExpression:      aws.String("attribute_not_exists(#e)"),
		ExpressionAttributeNames: names("#o", attrOwner, "#b", attrBeat),
		ExpressionAttributeValues: item{
			":o": text(owner), ":next": number(seen.Epoch + 1), ":zero": number(uint64(0)),
		},
	}
	if seen.Epoch > 0 {
		in.ConditionExpression = aws.String("#e = :e AND #b = :b")
		in.ExpressionAttributeValues[":e"] = number(seen.Epoch)
		in.ExpressionAttributeValues[":b"] = number(seen.Beat)
	}
	row, err := s.update(ctx, in)
	lease := leaseOf(row)
	if errors.Is(err, ErrFenced) && lease.Owner == owner && lease.Epoch == seen.Epoch+1 {
		return lease, nil // the reply to the first attempt was lost
	}
	return lease, err
}

// RenewLease shows that the owner lives. ErrFenced: it is not the owner any more.
func (s *Store) RenewLease(ctx context.Context, k LeaseKey, held Lease) error {
	_, err := s.update(ctx, &dynamodb.UpdateItemInput{
		Key:                      s.leaseKey(k),
		UpdateExpression:         aws.String("ADD #b :one"),
		ConditionExpression:      aws.String("#o = :o AND #e = :e"),
		ExpressionAttributeNames: names("#o", attrOwner, "#b", attrBeat),
		ExpressionAttributeValues: item{
			":o": text(held.Owner), ":e": number(held.Epoch), ":one": number(uint64(1)),
		},
	})
	return err
}

// ReleaseLease lets the next member take over at once.
func (s *Store) ReleaseLease(ctx context.Context, k LeaseKey, held Lease) error {
	_, err := s.update(ctx, &dynamodb.UpdateItemInput{
		Key:                       s.leaseKey(k),
		UpdateExpression:          aws.String("REMOVE #o"),
		ConditionExpression:       aws.String("#o = :o AND #e = :e"),
		ExpressionAttributeNames:  names("#o", attrOwner),
		ExpressionAttributeValues: item{":o": text(held.Owner), ":e": number(held.Epoch)},
	})
	return err
}

func leaseOf(row item) Lease {
	return Lease{Owner: textOf(row[attrOwner]), Epoch: uintOf(row[attrEpoch]), Beat: uintOf(row[attrBeat])}
}
