package packed

import (
	"context"
	"math/rand/v2"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/millrace-dev/millrace/internal/storage"
	"github.com/millrace-dev/millrace/internal/table"
)

const (
	// A placeholder has at most fewNoted to mostNoted commands without events, and a commit at most
	// mostNotedBytes of them. Beyond that, they become guards. Each commit draws its own limit, so
	// that commits made at the same time do not all write the same guards.
	fewNoted       = 32
	mostNoted      = 128
	mostNotedBytes = 4 << 10
)

// replace takes over the commands of a placeholder in the commit's place, and changes the commit so
// that it replaces the placeholder. It returns ErrSendAgain, or an error if the command is among
// them.
func (c *commit) replace(ctx context.Context, placeholder *item, stored table.Item) error {
	c.noted, c.guards = nil, placeholder.guards
	for _, d := range placeholder.commands() {
		if d.ID == c.p.stored(c.CommandID) {
			return c.duplicate(d.Command)
		}
		if d.IsKept(c.p.Config.Now()) {
			c.noted = append(c.noted, d)
		}
	}
	if c.CommandID != "" && c.guards {
		// The command may have been in an earlier placeholder.
		earlier, executed, err := c.p.executed(ctx, c.Aggregate, &storage.Commands{Guards: true}, c.CommandID)
		switch {
		case err != nil:
			return &unreadError{err}
		case executed && earlier.CommitID == c.Receipt.CommitID:
			return nil
		case executed:
			return c.duplicate(earlier)
		}
	}
	if err := c.note(ctx); err != nil {
		return &unreadError{err}
	}
	condition, names := aws.String("#c = :c"), table.AttributeNames("#c", attrCommit)
	values := table.Item{":c": stored[attrCommit]}
	if c.transaction == nil {
		c.put.ConditionExpression, c.put.ExpressionAttributeNames, c.put.ExpressionAttributeValues = condition, names, values
		return table.ErrSendAgain
	}
	first := c.transaction.TransactItems[0].Put
	first.ConditionExpression, first.ExpressionAttributeNames, first.ExpressionAttributeValues = condition, names, values
	// DynamoDB may remember the earlier request under the old token.
	c.transaction.ClientRequestToken = aws.String(c.p.Config.NewID())
	return table.ErrSendAgain
}

// note adds the commands to the commit's first item, or writes guards for them if there are many.
func (c *commit) note(ctx context.Context) error {
	all, first := c.noted, c.items[0]
	if len(c.Events) == 0 {
		all = append(all[:len(all):len(all)], c.dated())
	}
	value, err := c.p.commandsValue(all)
	if err != nil {
		return err
	}
	delete(first, attrNoted)
	size := table.ValueSize(value)
	if c.mostNoted == 0 {
		c.mostNoted = fewNoted + rand.IntN(mostNoted-fewNoted)
	}
	used := c.size
	if c.Beside != nil {
		used += c.Beside.Bytes + c.Beside.Parts*mostNotedBytes // each part may note that much
	}
	if len(all) > c.mostNoted || len(c.Events) > 0 && size > mostNotedBytes || table.ItemSize(first)+size+itemSpare > storage.MaxItemBytes || used+size > storage.MaxCommitBytes {
		if err := c.guardOnce(ctx); err != nil {
			return err
		}
		c.guards = true
		all = all[len(c.noted):]
		if value, err = c.p.commandsValue(all); err != nil {
			return err
		}
	}
	if len(all) > 0 {
		first[attrNoted] = value
	}
	if c.guards {
		first[attrGuards] = &types.AttributeValueMemberBOOL{Value: true}
	}
	return nil
}

// guardOnce writes guards for the noted commands for which this commit has not written one.
func (c *commit) guardOnce(ctx context.Context) error {
	var rest []storage.DatedCommand
	for _, d := range c.noted {
		if !c.guarded[d.ID] {
			rest = append(rest, d)
		}
	}
	if err := c.p.guard(ctx, c.Aggregate, rest); err != nil {
		return err
	}
	if c.guarded == nil {
		c.guarded = map[string]bool{}
	}
	for _, d := range rest {
		c.guarded[d.ID] = true
	}
	return nil
}

// takeOver copies the noted commands of a placeholder to the item that replaces it.
func takeOver(it, placeholder table.Item) {
	for _, name := range []string{attrNoted, attrGuards} {
		delete(it, name)
		if value, there := placeholder[name]; there {
			it[name] = value
		}
	}
}
