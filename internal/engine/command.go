package engine

import (
	"context"
	"crypto/sha256"
	"fmt"
	"unicode/utf8"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/internal/storage"
	"github.com/millrace-dev/millrace/journal/journaltype"
)

// Attributes of commits and commands.
const (
	AttrCommitID      = "commit_id"
	AttrCommandID     = "command_id"
	AttrCommitFirst   = "commit_first"
	AttrCommitVersion = "commit_version"

	// maxCommandID is in bytes. It keeps the guard of an aggregate with a short id within one write
	// unit.
	maxCommandID = 512
)

// Command returns the commit of a command. It returns false if the aggregate has no such
// command, or if Config.CommandRetention has passed. It reads strongly consistent. In Classic
// it reads the guard of the commit in a transaction, so it waits while that commit is being
// written. In Packed it reads the ids in the latest snapshot and in later commits, and a guard
// if the aggregate has any.
//
// Errors: ErrInvalidCommit, *CorruptItemError, ErrTableMissing, ErrThrottled, ErrAccess,
// *aggregate.InvalidIDError, and the error of ctx.
func (j *Engine) Command(ctx context.Context, id aggregate.ID, commandID string) (storage.Command, bool, error) {
	if err := id.Validate(); err != nil {
		return storage.Command{}, false, err
	}
	if commandID == "" {
		return storage.Command{}, false, fmt.Errorf("read command: %w: the command id is empty", journaltype.ErrInvalidCommit)
	}
	if err := validateCommandID(commandID); err != nil {
		return storage.Command{}, false, fmt.Errorf("read command: %w", err)
	}
	c, ok, err := j.Layout.Command(ctx, id, commandID)
	if err != nil {
		return storage.Command{}, false, fmt.Errorf("read command %q of %s: %w", commandID, id, err)
	}
	return c, ok, nil
}

func validateCommandID(commandID string) error {
	switch {
	case len(commandID) > maxCommandID:
		return fmt.Errorf("%w: the command id has %d bytes, at most %d are allowed: use a digest of it", journaltype.ErrInvalidCommit, len(commandID), maxCommandID)
	case !utf8.ValidString(commandID):
		return fmt.Errorf("%w: command id %q is not UTF-8: encode it as text", journaltype.ErrInvalidCommit, commandID)
	}
	return nil
}

// CommandDigest returns the digest that replaces a command id in keys.
func CommandDigest(commandID string) [32]byte { return sha256.Sum256([]byte(commandID)) }
