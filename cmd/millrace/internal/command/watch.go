package command

import (
	"bytes"
	"context"
	"errors"
	"time"

	"github.com/millrace-dev/millrace/journal"
)

// clearScreen puts the cursor in the first line and erases what is on the screen.
const clearScreen = "\x1b[H\x1b[2J"

// watch shows something again and again until ctx ends, which is no error. What is shown replaces
// what was shown before at a terminal, and follows it elsewhere. A failure ends it if it is the
// first time, or if it will not pass.
func (a *app) watch(ctx context.Context, every time.Duration, show func(context.Context) error) error {
	out := a.env.Out
	defer func() { a.env.Out = out }()
	timer := time.NewTimer(every)
	defer timer.Stop()
	for first := true; ; first = false {
		var screen bytes.Buffer
		switch {
		case a.env.OutTerminal && !a.json:
			screen.WriteString(clearScreen)
		case !first && !a.json:
			screen.WriteByte('\n')
		}
		a.env.Out = &screen // so that it is drawn at once
		err := show(ctx)
		if ctx.Err() != nil {
			return nil
		}
		if err != nil && (first || errors.Is(err, journal.ErrTableMissing) || errors.Is(err, journal.ErrAccess)) {
			return err
		}
		if _, err := screen.WriteTo(out); err != nil {
			return err
		}
		if err != nil {
			a.note("millrace: %s", a.explain(err))
		}
		timer.Reset(every)
		select {
		case <-ctx.Done():
			return nil
		case <-timer.C:
		}
	}
}
