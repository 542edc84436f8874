package engine

import (
	"context"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/millrace-dev/millrace/internal/storage"
	"github.com/millrace-dev/millrace/internal/table"
	"github.com/millrace-dev/millrace/journal/journaltype"
)

// attrCommitParts is an attribute of the guard of a joint command. It lists the aggregates and
// events that its commit has written.
const attrCommitParts = "commit_parts"

// CommandPartition returns the partition of the guard of a command for several aggregates. It is a
// partition of its own, because a repetition of the command may choose other aggregates. It ends in
// a letter, unlike every shard key, and contains no slash.
func CommandPartition(commandID string) string {
	digest := CommandDigest(commandID)
	return fmt.Sprintf("%s-command-%xx", DescriptorPartition, digest[:15])
}

// JointCommand returns the commit of a command for several aggregates. It returns false if
// there is none, or if Config.CommandRetention has passed. It sees a commit whole or not at
// all. It costs two read units.
//
// Errors: ErrInvalidCommit, *CorruptItemError, ErrTableMissing, ErrThrottled, ErrAccess, and
// the error of ctx.
func (j *Engine) JointCommand(ctx context.Context, commandID string) (storage.JointCommand, bool, error) {
	if commandID == "" {
		return storage.JointCommand{}, false, fmt.Errorf("read command: %w: the command id is empty", journaltype.ErrInvalidCommit)
	}
	if err := validateCommandID(commandID); err != nil {
		return storage.JointCommand{}, false, fmt.Errorf("read command: %w", err)
	}
	c, executed, err := j.jointCommand(ctx, commandID)
	if err != nil {
		return storage.JointCommand{}, false, fmt.Errorf("read command %q: %w", commandID, err)
	}
	return c, executed, nil
}

func (j *Engine) jointCommand(ctx context.Context, commandID string) (storage.JointCommand, bool, error) {
	guards, err := j.TransactGet(ctx, j.Config.Tables.Journal, []table.Item{j.Layout.CommandKey(commandID)})
	if err != nil || len(guards) == 0 {
		return storage.JointCommand{}, false, err
	}
	c, err := j.jointCommandOf(guards[0])
	return c, err == nil, err
}

func (j *Engine) jointCommandOf(guard table.Item) (c storage.JointCommand, err error) {
	var idOK, commitOK bool
	c.ID, idOK = table.StringOf(guard[AttrCommandID])
	c.CommitID, commitOK = table.StringOf(guard[AttrCommitID])
	list, partsOK := guard[attrCommitParts].(*types.AttributeValueMemberL)
	if idOK && commitOK && partsOK {
		for _, v := range list.Value {
			p, ok := jointPartOf(v)
			if !ok {
				partsOK = false
				break
			}
			c.Parts = append(c.Parts, p)
		}
	}
	if !idOK || !commitOK || !partsOK {
		partition, _ := table.StringOf(guard[j.Config.Attributes.PartitionKey])
		return storage.JointCommand{}, &journaltype.CorruptItemError{
			Table: j.Config.Tables.Journal, PartitionKey: partition, Reason: "is not the guard of a command",
		}
	}
	return c, nil
}

func jointPartOf(v types.AttributeValue) (p storage.JointPart, ok bool) {
	list, _ := v.(*types.AttributeValueMemberL)
	if list == nil || len(list.Value) != 4 {
		return p, false
	}
	var oks [4]bool
	p.Aggregate.Type, oks[0] = table.StringOf(list.Value[0])
	p.Aggregate.Value, oks[1] = table.StringOf(list.Value[1])
	p.First, oks[2] = table.UintOf(list.Value[2])
	p.Version, oks[3] = table.UintOf(list.Value[3])
	return p, oks == [4]bool{true, true, true, true}
}

// setGuard makes the guard of the command, and lists the events of the commit in it.
func (t *jointCommit) setGuard(drafts []Draft, at time.Time) {
	if t.commandID == "" {
		return
	}
	var parts []types.AttributeValue
	for _, d := range drafts {
		if len(d.Events) > 0 {
			parts = append(parts, &types.AttributeValueMemberL{Value: []types.AttributeValue{
				table.StringValue(d.Aggregate.Type), table.StringValue(d.Aggregate.Value), table.NumberValue(d.Expected + 1), table.NumberValue(d.Version()),
			}})
		}
	}
	t.guard = t.Layout.CommandKey(t.commandID)
	t.guard[AttrCommandID], t.guard[AttrCommitID] = table.StringValue(t.commandID), table.StringValue(t.id)
	t.guard[attrCommitParts] = &types.AttributeValueMemberL{Value: parts}
	t.dateGuard(at)
}

func (t *jointCommit) dateGuard(at time.Time) {
	if keep := t.Config.CommandRetention; keep > 0 && t.guard != nil {
		t.guard[t.Config.Attributes.TTL] = table.NumberValue(at.Add(keep).Unix() + 1)
	}
}

// duplicate explains why the guard exists already. It returns nil if this commit wrote it.
func (t *jointCommit) duplicate(guard table.Item) error {
	command, err := t.Engine.jointCommandOf(guard)
	switch {
	case err != nil:
		return fmt.Errorf("append to %s, nothing written: %w", t.Target(), err)
	case command.CommitID == t.id:
		return nil
	}
	return &journaltype.DuplicateCommandError{CommandID: command.ID, CommitID: command.CommitID}
}
