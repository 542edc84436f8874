package engine

import (
	"fmt"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/millrace-dev/millrace/internal/storage"
	"github.com/millrace-dev/millrace/internal/table"
	"github.com/millrace-dev/millrace/journal/journaltype"
)

// validateWrites refuses writes of the caller that would change events or snapshots.
func (j *Engine) validateWrites(c *storage.Commit) error { return j.validateWritesBeside(c, c) }

// validateWritesBeside does the same as validateWrites, for two commits in one transaction.
func (j *Engine) validateWritesBeside(c, other *storage.Commit) error {
	refuse := func(i int, format string, args ...any) error {
		return fmt.Errorf("append to %s: %w: write %d: %s", c.Aggregate, journaltype.ErrInvalidCommit, i, fmt.Sprintf(format, args...))
	}
	for i, w := range c.Writes {
		t, ok := table.TargetOf(w)
		if !ok {
			return refuse(i, "set exactly one of Put, Update, Delete and ConditionCheck")
		}
		if t.Table == "" {
			return refuse(i, "its %s names no table", t.Kind)
		}
		name := t.Table[strings.LastIndexByte(t.Table, '/')+1:] // the name may be an ARN
		if name != j.Config.Tables.Journal && name != j.Config.Tables.Snapshot {
			// This includes the checkpoint table: a handler can store its position in the same
			// transaction.
			continue
		}
		if t.Kind != "ConditionCheck" {
			return refuse(i, "%s on table %q: only commits write there; a ConditionCheck is allowed", t.Kind, t.Table)
		}
		if j.Layout.IsOwn(other, name, t.Key) {
			return refuse(i, "ConditionCheck on an item of the commit's own: a transaction can name an item only once; use Expected for the head")
		}
	}
	return nil
}

// WriteRefused returns the error for a cancelled transaction whose reason is about the caller's
// action.
func (d *Draft) WriteRefused(i int, reason types.CancellationReason) *journaltype.WriteRefusedError {
	w, _ := table.TargetOf(d.Writes[i])
	return &journaltype.WriteRefusedError{
		ID: d.Aggregate, Index: i, Table: w.Table,
		Code: aws.ToString(reason.Code), Message: aws.ToString(reason.Message), Item: reason.Item,
	}
}
