package command

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/millrace-dev/millrace/internal/printable"
)

var errNotConfirmed = errors.New("not confirmed, nothing was done")

// confirm asks the user to type a name before an action that cannot be undone. Without a terminal
// it needs --yes.
func (a *app) confirm(ctx context.Context, yes bool, name, what string) error {
	switch {
	case yes:
		return nil
	case !a.env.InTerminal:
		return wrongUsage("%s: confirm it with --yes, since there is no terminal", strings.TrimSuffix(what, "."))
	}
	_, _ = fmt.Fprintf(a.env.Err, "%s\nType %s to continue: ", printable.Lines(what), printable.Text(name))
	answer := make(chan string, 1)
	go func() { // ends with the line or with the process: a read of a terminal cannot be canceled
		text, _ := bufio.NewReader(a.env.In).ReadString('\n')
		answer <- strings.TrimSpace(text)
	}()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case text := <-answer:
		if text != name {
			return errNotConfirmed
		}
		return nil
	}
}
