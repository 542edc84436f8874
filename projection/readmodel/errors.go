package readmodel

import (
	"errors"
	"fmt"
	"strings"
	"time"
)

// Errors of this package, for errors.Is. With each of them, nothing was changed. Errors of the
// packages groups and journal and of the SDK are returned too. After an error of the SDK the change
// may have been made: see [Model.Generations].
var (
	// ErrNoModel reports that the table has no read model of that name. A program creates it when
	// it first opens it.
	ErrNoModel = errors.New("no such read model")
	// ErrNoGeneration reports that the generation does not exist or was dropped: see
	// [Model.Generations].
	ErrNoGeneration = errors.New("no such generation of the read model")
	// ErrServing reports that the generation serves, so it cannot be dropped. Switch to another one
	// first.
	ErrServing = errors.New("generation serves queries")
	// ErrNoPrevious reports that there is no generation to return to: none served before, or it was
	// dropped.
	ErrNoPrevious = errors.New("no previous generation")
	// ErrChanged reports that other processes changed the generations at the same time, in each of
	// several attempts. Read [Model.Generations] before you repeat the call.
	ErrChanged = errors.New("generations were changed by another process")
	// ErrCorrupt reports that the item of the read model was not written by this package.
	ErrCorrupt = errors.New("corrupt item of a read model")
)

// ConfigError reports a setting that cannot work. Field names the setting, and Reason says why.
type ConfigError struct{ Field, Reason string }

func (e *ConfigError) Error() string {
	return fmt.Sprintf("read model config: %s %s", e.Field, e.Reason)
}

// BehindError reports a generation that lags by more than [Config].MaxLag or MaxDelay, or that has
// no consumers. Nothing was changed.
type BehindError struct {
	Generation Generation // the generation that is behind
	Progress   Progress   // how far it is
	MaxLag     uint64
	MaxDelay   time.Duration
}

func (e *BehindError) Error() string {
	p := e.Progress
	behind := fmt.Sprintf("generation %s is %d events behind, more than %d", e.Generation, p.Left, e.MaxLag)
	if p.Left <= e.MaxLag {
		behind = fmt.Sprintf("generation %s has not handled an event of %s, more than %v ago, and %d in all", e.Generation, p.Oldest.UTC().Format(time.RFC3339), e.MaxDelay, p.Left)
	}
	switch {
	case !p.Begun && e.Generation.Form != "":
		return fmt.Sprintf("generation %s has no consumers yet: start them (Run), in programs that know the form %q (Config.Forms)", e.Generation, e.Generation.Form)
	case !p.Begun:
		return fmt.Sprintf("generation %s has no consumers yet: start them (Run)", e.Generation)
	case len(p.Stopped) > 0:
		return fmt.Sprintf("%s, and an event has stopped its group on topic %s: find it (Stopped of groups.Status), fix the cause, and resume the group (groups.Group.Resume)",
			behind, strings.Join(p.Stopped, ", "))
	case len(p.Paused) > 0:
		return fmt.Sprintf("%s, and its group is paused on topic %s: resume it (groups.Group.Resume)", behind, strings.Join(p.Paused, ", "))
	}
	if p.Left <= e.MaxLag {
		return behind + ": wait (CatchUp), or find the aggregate that blocks it (Behind of groups.LagOptions)"
	}
	return behind + ": wait (CatchUp), or increase MaxLag if events arrive faster than that"
}

// FormError reports that the form of the serving generation is not among this program's
// [Config].Forms: the program is older than the form, or no longer supports it.
type FormError struct {
	Generation Generation // the serving generation
	Forms      []string   // the forms that the program knows
}

func (e *FormError) Error() string {
	return fmt.Sprintf("generation %s, which serves, is of form %q, and this program knows %q: query it from a release that knows the form, or roll back (Rollback)",
		e.Generation, e.Generation.Form, e.Forms)
}
