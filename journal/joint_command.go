package journal

import (
	"context"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/millrace-dev/millrace/internal/storage"
)

// attrCommitParts is an attribute of the guard of a joint command. It lists the aggregates and
// events that its commit has written.
const attrCommitParts = "commit_parts"

// commandPartition returns the partition of the guard of a command for several aggregates. It is a
// partition of its own, because a repetition of the command may choose other aggregates. It ends in
// a letter, unlike every shard key, and contains no slash.
func commandPartition(commandID string) string {
	digest := commandDigest(commandID)
	return fmt.Sprintf("%s-command-%xx", descriptorPartition, digest[:15])
}

// JointCommand returns the commit of a command for several aggregates. It returns false if
// there is none, or if Config.CommandRetention has passed. It sees a commit whole or not at
// all. It costs two read units.
//
// Errors: ErrInvalidCommit, *CorruptItemError, ErrTableMissing, ErrThrottled, ErrAccess, and
// the error of ctx.
func (j *engine) JointCommand(ctx context.Context, commandID string) (storage.JointCommand, bool, error) {
	if commandID == "" {
		return storage.JointCommand{}, false, fmt.Errorf("read command: %w: the command id is empty", ErrInvalidCommit)
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

func (j *engine) jointCommand(ctx context.Context, commandID string) (storage.JointCommand, bool, error) {
	guards, err := j.transactGet(ctx, j.config.Tables.Journal, []item{j.layout.commandKey(commandID)})
	if err != nil || len(guards) == 0 {
		return storage.JointCommand{}, false, err
	}
	c, err := j.jointCommandOf(guards[0])
	return c, err == nil, err
}

func (j *engine) jointCommandOf(guard item) (c storage.JointCommand, err error) {
	var idOK, commitOK bool
	c.ID, idOK = stringOf(guard[attrCommandID])
	c.CommitID, commitOK = stringOf(guard[attrCommitID])
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
		partition, _ := stringOf(guard[j.config.Attributes.PartitionKey])
		return storage.JointCommand{}, &CorruptItemError{
			Table: j.config.Tables.Journal, PartitionKey: partition, Reason: "is not the guard of a command",
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
	p.Aggregate.Type, oks[0] = stringOf(list.Value[0])
	p.Aggregate.Value, oks[1] = stringOf(list.Value[1])
	p.First, oks[2] = uintOf(list.Value[2])
	p.Version, oks[3] = uintOf(list.Value[3])
	return p, oks == [4]bool{true, true, true, true}
}

// setGuard makes the guard of the command, and lists the events of the commit in it.
func (t *jointCommit) setGuard(drafts []draft, at time.Time) {
	if t.commandID == "" {
		return
	}
	var parts []types.AttributeValue
	for _, d := range drafts {
		if len(d.Events) > 0 {
			parts = append(parts, &types.AttributeValueMemberL{Value: []types.AttributeValue{
				stringValue(d.Aggregate.Type), stringValue(d.Aggregate.Value), numberValue(d.Expected + 1), numberValue(d.Version()),
			}})
		}
	}
	t.guard = t.layout.commandKey(t.commandID)
	t.guard[attrCommandID], t.guard[attrCommitID] = stringValue(t.commandID), stringValue(t.id)
	t.guard[attrCommitParts] = &types.AttributeValueMemberL{Value: parts}
	t.dateGuard(at)
}

func (t *jointCommit) dateGuard(at time.Time) {
	if keep := t.config.CommandRetention; keep > 0 && t.guard != nil {
		t.guard[t.config.Attributes.TTL] = numberValue(at.Add(keep).Unix() + 1)
	}
}

// duplicate explains why the guard exists already. It returns nil if this commit wrote it.
func (t *jointCommit) duplicate(guard item) error {
	command, err := t.engine.jointCommandOf(guard)
	switch {
	case err != nil:
		return fmt.Errorf("append to %s, nothing written: %w", t.target(), err)
	case command.CommitID == t.id:
		return nil
	}
	return &DuplicateCommandError{CommandID: command.ID, CommitID: command.CommitID}
}
