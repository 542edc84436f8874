package command

import (
	"bytes"
	"context"
	"errors"
	"time"

	"github.com/millrace-dev/millrace/journal"
)

// clearScreen moves the cursor to the first line, and erases the screen.
const clearScreen = "\x1b[H\x1b[2J"

// watch calls show at an interval until ctx ends, and then returns nil. On a terminal each output
// replaces the one before. It returns an error of the first call, and errors that will not
// disappear.
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
		a.env.Out = &screen // the output is written at once
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
			a.note("millrace: %s", a.explain(ctx, err))
		}
		timer.Reset(every)
		select {
		case <-ctx.Done():
			return nil
		case <-timer.C:
		}
	}
}
