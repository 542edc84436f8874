package command

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"strings"
)

var errNotConfirmed = errors.New("not confirmed, nothing was done")

// confirm asks somebody at a terminal to type a name before what cannot be undone. Where there is
// no terminal, --yes has to have said so.
func (a *app) confirm(ctx context.Context, yes bool, name, what string) error {
	switch {
	case yes:
		return nil
	case !a.env.InTerminal:
		return wrongUsage("%s: confirm it by --yes, as there is no terminal to ask at", strings.TrimSuffix(what, "."))
	}
	_, _ = fmt.Fprintf(a.env.Err, "%s\nType %s to go on: ", what, name)
	answer := make(chan string, 1)
	go func() { // ends with its line, or with the process: a read of a terminal cannot be given up
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
