package millrace

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/ThreeDotsLabs/watermill"

	"github.com/millrace-dev/millrace/internal/retry"
	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/subscriber/groups"
)

const (
	// retentionCheck is the time between two calls of groups.Groups.TrimDue, which makes a pass if
	// one is due.
	retentionCheck = 5 * time.Minute
	// retentionPause is the time between two passes if the first one has not removed everything.
	retentionPause = 5 * time.Second
)

// addRetention adds the removal of old commands to what Run and sweeps do.
func (a *App) addRetention() {
	if a.config.CommandRetention < 0 {
		return
	}
	a.workers = append(a.workers, Service{Name: "retention of commands", Run: a.retainCommands})
	a.fires = append(a.fires, func(ctx context.Context) error {
		deadline, _ := ctx.Deadline()
		ctx, cancel := context.WithTimeout(ctx, time.Until(deadline)/2)
		defer cancel()
		a.removeCommands(ctx)
		return nil
	})
}

// retainCommands removes old commands until ctx ends.
func (a *App) retainCommands(ctx context.Context) error {
	pause := rand.N(retentionCheck)
	for retry.Sleep(ctx, pause) {
		if pause = retentionCheck; a.removeCommands(ctx) {
			pause = retentionPause
		}
	}
	return ctx.Err()
}

// removeCommands removes old commands of all queues if that is due. More reports whether some are
// left.
func (a *App) removeCommands(ctx context.Context) (more bool) {
	for _, topic := range append([]string{a.config.CommandTopic}, a.inboxes...) {
		if handling := a.consumersOf(topic); len(handling) > 0 && a.removeFrom(ctx, topic, handling) {
			more = true
		}
	}
	return more
}

// consumersOf returns the groups that must have handled the commands of a topic.
func (a *App) consumersOf(topic string) []string {
	names := a.groupsOf(topic)
	if len(names) == 0 && a.sends && topic == a.config.CommandTopic {
		return []string{commandGroup} // of another program, which may begin later
	}
	return names
}

// removeFrom removes old commands of a topic if that is due. It logs an error, because the next
// pass tries again. More reports whether some are left.
func (a *App) removeFrom(ctx context.Context, topic string, handling []string) (more bool) {
	trimmed, err := a.groups.TrimDue(ctx, topic, groups.TrimOptions{Keep: a.config.CommandRetention, Groups: handling})
	fields := watermill.LogFields{"topic": topic, "commands": trimmed.Events, "held_by": trimmed.HeldBy}
	switch {
	case errors.Is(err, groups.ErrNoGroups), err != nil && ctx.Err() != nil:
	case errors.Is(err, journal.ErrAccess):
		a.config.Logger.Info("Old commands are not removed: this program may not remove events. Set Config.CommandRetention to -1, or allow it", fields.Add(watermill.LogFields{"err": err}))
	case err != nil:
		a.config.Logger.Error("Old commands could not be removed; will try again", err, fields)
	case trimmed.Events > 0:
		a.config.Logger.Debug("Old commands were removed", fields)
	}
	return err == nil && trimmed.More
}
