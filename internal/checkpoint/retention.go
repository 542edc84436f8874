package checkpoint

import (
	"context"
	"errors"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
)

// retentionPartition has a row for each topic whose old messages are removed.
const retentionPartition = "retention"

const (
	attrPass  = "pass_at"
	attrUpTo  = "up_to"
	attrHeld  = "held"
	attrAgain = "again_at"
)

// Retention says how far the removal of old messages of a topic has come.
type Retention struct {
	// Pass is when the last pass began. It identifies the claim of a pass.
	Pass time.Time
	// UpTo is the time before which messages were visited.
	UpTo time.Time
	// Held is the time of the earliest message before UpTo that a group has kept, and Again is when
	// a pass visits the messages from there on again. Both are zero if there is none.
	Held, Again time.Time
}

// ReadRetention reads the row of a topic, eventually consistent. It is zero without a row.
func (s *Store) ReadRetention(ctx context.Context, topic string) (r Retention, err error) {
	out, err := s.client.GetItem(ctx, &dynamodb.GetItemInput{TableName: &s.table, Key: s.key(retentionPartition, topic)})
	if err != nil {
		return r, s.explain(err)
	}
	return retentionOf(out.Item)
}

func retentionOf(row item) (r Retention, err error) {
	var errs [4]error
	r.Pass, errs[0] = timeOf(row[attrPass])
	r.UpTo, errs[1] = timeOf(row[attrUpTo])
	r.Held, errs[2] = timeOf(row[attrHeld])
	r.Again, errs[3] = timeOf(row[attrAgain])
	return r, errors.Join(errs[:]...)
}

// ClaimRetention stores that a pass begins now, unless another pass has begun since seen was read.
// It returns ErrFenced then.
func (s *Store) ClaimRetention(ctx context.Context, topic string, seen Retention, now time.Time) error {
	in := &dynamodb.UpdateItemInput{
		Key: s.key(retentionPartition, topic), UpdateExpression: aws.String("SET #p = :now"),
		ConditionExpression:       aws.String("attribute_not_exists(#p)"),
		ExpressionAttributeNames:  map[string]string{"#p": attrPass},
		ExpressionAttributeValues: item{":now": number(now.UnixMilli())},
	}
	if !seen.Pass.IsZero() {
		in.ConditionExpression = aws.String("#p = :seen")
		in.ExpressionAttributeValues[":seen"] = number(seen.Pass.UnixMilli())
	}
	_, err := s.update(ctx, in)
	return err
}

// SaveRetention stores how far a pass has come, and a new Pass. It returns ErrFenced if another
// pass has begun since it was claimed.
func (s *Store) SaveRetention(ctx context.Context, topic string, claimed time.Time, r Retention) error {
	update := "SET #p = :p, #u = :u REMOVE #h, #a"
	values := item{":claimed": number(claimed.UnixMilli()), ":p": number(r.Pass.UnixMilli()), ":u": number(r.UpTo.UnixMilli())}
	if !r.Held.IsZero() {
		update = "SET #p = :p, #u = :u, #h = :h, #a = :a"
		values[":h"], values[":a"] = number(r.Held.UnixMilli()), number(r.Again.UnixMilli())
	}
	_, err := s.update(ctx, &dynamodb.UpdateItemInput{
		Key: s.key(retentionPartition, topic), UpdateExpression: &update, ConditionExpression: aws.String("#p = :claimed"),
		ExpressionAttributeNames:  map[string]string{"#p": attrPass, "#u": attrUpTo, "#h": attrHeld, "#a": attrAgain},
		ExpressionAttributeValues: values,
	})
	return err
}
