package command

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/millrace-dev/millrace/cmd/millrace/internal/output"
	"github.com/millrace-dev/millrace/internal/printable"
	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/subscriber/groups"
)

// The pauses between two polls of group catch-up.
const (
	firstPause   = 100 * time.Millisecond
	longestPause = 10 * time.Second
	// restPerPoll limits exact polls, because they read all heads. The pause after an exact poll is
	// at least this many times its duration.
	restPerPoll = 4
	// exactEvery is the interval of exact polls while the estimate says that events are left.
	exactEvery = time.Minute
)

func (a *app) catchUp() *cobra.Command {
	var before string
	timeout := 10 * time.Minute
	cmd := &cobra.Command{
		Use:   "catch-up [GROUP [TOPIC]] [flags]",
		Short: "Wait until groups have handled all events, by their exact lag",
		Long: `Wait until the exact lag of a group is 0: it has handled all events of the topic. Without TOPIC, wait
for the group on each of its topics, and without GROUP, for all groups, one after the other. With
--before, wait only for events that occurred before a time, such as "now", while others are written.

The exit code is 0 if the lag is 0, and 1 if --timeout ends first. The command ends with 1 at once if
only an operator can help: the group is paused or stopped, aggregates are parked, or an aggregate
cannot be read. If no member owns a shard, or if aggregates are blocked or slow, it prints this and
waits.

A group with external positions, such as that of an SQL read model, has to be compared in its own
store. Without GROUP, the command prints a note about such a group and continues with the next one.

Skipped and deferred events count as handled. The output has their number. An event that was written
within the last seconds may not count yet, so stop the writers before.

The first poll of a group is exact, whatever --timeout is: --timeout 0s checks once. It costs the same
as groups --exact. Then the command polls the estimate, at pauses that grow up to 10 seconds. An exact
poll follows when the estimate says that no events are left, and otherwise every minute. Exact polls
take at most a fifth of the time.`,
		Example: "  millrace group catch-up --timeout 1h\n  millrace group catch-up order-history order --before now --timeout 1h",
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 2 {
				return wants("GROUP", "TOPIC")(cmd, args)
			}
			return nil
		},
		RunE: a.does(func(cmd *cobra.Command, args []string) error {
			if timeout < 0 {
				return wrongUsage("--timeout is %s: want 0s or more", timeout)
			}
			var until moment
			if before != "" {
				var err error
				if until, err = parseMoment(before); err != nil {
					return wrongUsage("--before: %v", err)
				}
				if until.isBeginning() {
					return wrongUsage("--before: no event occurred before the beginning")
				}
			}
			return a.runCatchUp(cmd.Context(), args, until, timeout)
		}),
	}
	cmd.Flags().StringVar(&before, "before", "", "only events that occurred before this `time`: now, a duration before now, or RFC 3339")
	cmd.Flags().DurationVar(&timeout, "timeout", timeout, "maximum time to wait; 0s checks once")
	return cmd
}

// runCatchUp waits for one group, or for several, one after the other.
func (a *app) runCatchUp(ctx context.Context, args []string, until moment, timeout time.Duration) error {
	j, err := a.open(ctx)
	if err != nil {
		return err
	}
	g, before := groups.New(j), until.on(j)
	waiting, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	if len(args) == 2 {
		line, err := (&catchUp{app: a, group: g.Of(args[0], args[1]), before: before}).run(ctx, waiting)
		if err != nil {
			return err
		}
		return a.printGroup(*line)
	}
	all, err := g.List(ctx)
	if err != nil {
		return err
	}
	if len(args) == 1 {
		all = slices.DeleteFunc(all, func(one groups.Status) bool { return one.Name != args[0] })
	}
	switch {
	case len(all) == 0 && len(args) == 1:
		return fmt.Errorf("%s: %w", printable.Text(args[0]), groups.ErrNoGroup)
	case len(all) == 0:
		a.note("No consumer groups. A group is created when it first subscribes.")
	}
	rows := output.NewRows(a.env.Out, a.json, groupColumns...)
	for _, one := range all {
		if one.ExternalPositions && len(args) == 0 {
			a.note("Group %s on %s has external positions: compare it in its own store.", printable.Text(one.Name), printable.Text(one.Topic))
			continue
		}
		line, err := (&catchUp{app: a, group: g.Of(one.Name, one.Topic), before: before}).run(ctx, waiting)
		if err == nil {
			err = rows.Print(*line)
		}
		if err != nil {
			return errors.Join(rows.Flush(), err)
		}
	}
	return rows.Flush()
}

// catchUp waits until a group has handled its events.
type catchUp struct {
	*app
	group  *groups.Group
	before time.Time // zero: all events count
}

// run returns the group with its lag. waiting limits the wait: it is ctx with a timeout.
func (c *catchUp) run(ctx, waiting context.Context) (*groupLine, error) {
	progress := c.showProgress()
	defer progress.Done()
	var last *groupBehindError // result of the last exact poll
	var exact time.Time        // next exact poll, even if the estimate has events left
	noted := ""
	reading := ctx // the first poll may take longer than the timeout
	for pause := firstPause; ; pause = min(2*pause, longestPause) {
		began := c.env.Now()
		line, behind, err := c.poll(reading, last, began.Before(exact))
		switch {
		case line != nil:
			return line, line.countSkipped(ctx, c.group)
		case ctx.Err() != nil:
			return nil, ctx.Err()
		case err != nil && (last == nil || waiting.Err() == nil):
			return nil, err
		case err != nil: // the timeout has ended the poll
			return nil, last
		case waiting.Err() != nil, behind.hold.final:
			return nil, behind
		}
		if text := behind.hold.text; text != noted {
			if noted = text; text != "" {
				c.note("%v; waiting", behind)
			}
		}
		if behind != last {
			last, exact, reading = behind, c.env.Now().Add(exactEvery), waiting
		}
		progress.Show(func(time.Duration) string { return behind.Error() })
		select {
		case <-waiting.Done():
			return nil, cmp.Or[error](ctx.Err(), last)
		case <-time.After(max(pause, restPerPoll*c.env.Now().Sub(began))):
		}
	}
}

// poll returns the group if it has handled its events, and otherwise what is left. If guess is set,
// it returns the last result as long as the estimate has events left, except for a group that only
// an operator can help.
func (c *catchUp) poll(ctx context.Context, last *groupBehindError, guess bool) (*groupLine, *groupBehindError, error) {
	one, err := c.group.Status(ctx)
	if err != nil {
		return nil, nil, err
	}
	if guess && !one.Paused {
		estimate, err := c.group.Estimate(ctx)
		if err != nil || !c.done(estimate.Lag) && estimate.Parked == 0 {
			return nil, last, err
		}
	}
	var corrupt *journal.CorruptItemError
	options := groups.LagOptions{OldestOf: -1, Corrupt: func(err *journal.CorruptItemError) { corrupt = err }}
	if !c.before.IsZero() {
		options.OldestOf = 0
	}
	lag, err := c.group.Lag(ctx, options)
	switch {
	case err != nil:
		return nil, nil, err
	case corrupt != nil:
		return nil, nil, fmt.Errorf("it is not known whether %s has handled all events of %s: %w", printable.Text(c.group.Name()), printable.Text(c.group.Topic()), corrupt)
	}
	line := newGroupLine(one)
	line.lagLine = newLagLine(lag.Lag, c.env.Now())
	if c.done(lag.Lag) {
		return &line, nil, nil
	}
	return nil, &groupBehindError{line, holdUp(line, lag.Lag)}, nil
}

// done reports whether a lag has none of the events that count.
func (c *catchUp) done(lag groups.Lag) bool {
	if c.before.IsZero() || lag.AtLeast || lag.Oldest.IsZero() {
		return lag.Events == 0 && !lag.AtLeast
	}
	return !lag.Oldest.Before(c.before)
}

// hold is what holds a group up. It is final if only an operator can change it.
type hold struct {
	text, advice string
	final        bool
}

func holdUp(g groupLine, lag groups.Lag) hold {
	command := func(name string) string {
		return fmt.Sprintf("`millrace %s %s %s`", name, printable.Text(g.Group), printable.Text(g.Topic))
	}
	switch state := g.state(); {
	case state == "stopped":
		return hold{"an event that kept failing has stopped it", command("groups") + " shows the event, and " + command("group resume") + " continues.", true}
	case state == "paused":
		return hold{"it is paused", command("group resume") + " continues.", true}
	case lag.Parked > 0:
		return hold{"aggregates are parked", command("group parked") + " lists them. `millrace group unpark` retries their events, and `millrace group skip` skips one.", true}
	case state == "idle":
		return hold{"no member owns a shard", "Start a program that runs the group.", false}
	case state == "dead":
		return hold{"its members have crashed", "Start a program that runs the group.", false}
	case lag.Blocked > lag.Slow:
		return hold{"aggregates are blocked by an event that is tried again", command("group behind") + " lists them with their errors.", false}
	case lag.Blocked > 0:
		return hold{"aggregates wait for a slow handler", command("group behind") + " lists them.", false}
	}
	return hold{advice: fmt.Sprintf("`millrace group behind %s %s --all` lists the aggregates. --timeout sets the maximum time of the wait.", printable.Text(g.Group), printable.Text(g.Topic))}
}

// groupBehindError reports a group that has not handled all events.
type groupBehindError struct {
	group groupLine
	hold  hold
}

func (e *groupBehindError) Error() string {
	g := e.group
	text := fmt.Sprintf("group %s on %s has not handled %s of %s", printable.Text(g.Group), printable.Text(g.Topic),
		output.Counted(g.Events, "event", "events"), output.Counted(g.Aggregates, "aggregate", "aggregates"))
	if g.Parked > 0 {
		text += fmt.Sprintf(" (%s parked)", output.Count(g.Parked))
	}
	if e.hold.text != "" {
		text += ": " + e.hold.text
	}
	return text
}
