package command

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/cmd/millrace/internal/output"
	"github.com/millrace-dev/millrace/internal/printable"
	"github.com/millrace-dev/millrace/subscriber/groups"
)

// groupLine is a consumer group on a topic as JSON.
type groupLine struct {
	Kind   string `json:"kind"` // "group"
	Group  string `json:"group"`
	Topic  string `json:"topic"`
	Resets uint64 `json:"resets"`
	Start  string `json:"start,omitempty"` // none: the beginning
	Paused bool   `json:"paused"`
	// OldRowsUntil is until when the rows from before the last reset stay, at least.
	OldRowsUntil string `json:"old_rows_until,omitempty"`
	// Stopped is the failed event that has paused the group; none if an operator has paused it.
	Stopped *stoppedLine `json:"stopped,omitempty"`
	Members int          `json:"members"`
	// Dead is the number of members that have sent no heartbeat for longer than their lease.
	Dead   int `json:"dead,omitempty"`
	Shards int `json:"shards"`
	Owned  int `json:"owned"` // shards that a member owns
	// LastBurst is the end of the last burst that had something to do; none if a process that runs
	// for long has joined since. NextDue is when a sweep has something to do without further
	// events, and is only read for one group.
	LastBurst string `json:"last_burst,omitempty"`
	NextDue   string `json:"next_due,omitempty"`
	// ExternalPositions reports that members store the positions outside of the checkpoint table.
	// Then there is no lag.
	ExternalPositions bool `json:"external_positions,omitempty"`
	// NoReplay reports that a replay needs the flag --replay.
	NoReplay bool `json:"no_replay,omitempty"`
	// RowTable is the table whose rows are the positions, if they are not in the checkpoint table.
	RowTable string `json:"row_table,omitempty"`
	// Skipped is the number of skipped and deferred events. SkippedMore reports that there are more
	// than were counted.
	Skipped     int  `json:"skipped"`
	SkippedMore bool `json:"skipped_more,omitempty"`
	*lagLine
}

// stoppedLine is the failed event that has stopped a group.
type stoppedLine struct {
	Aggregate aggregateName `json:"aggregate"`
	Number    uint64        `json:"number"`
	Type      string        `json:"type"` // empty if the event could not be read
	StoppedAt string        `json:"stopped_at"`
	Reason    string        `json:"reason"`
}

// groupShardLine is a logical shard of a group.
type groupShardLine struct {
	Kind  string `json:"kind"` // "group_shard"
	Group string `json:"group"`
	Topic string `json:"topic"`
	Shard int    `json:"shard"`
	Owner uint64 `json:"owner"` // number of a member; 0 if the shard is free
	// OwnerName is the name of the member: by default host name and process id.
	OwnerName string `json:"owner_name,omitempty"`
	OwnerDead bool   `json:"owner_dead,omitempty"`
	Epoch     uint64 `json:"epoch"`
	*lagLine
}

func newGroupLine(g groups.Status) groupLine {
	l := groupLine{
		Kind: "group", Group: g.Name, Topic: g.Topic, Resets: g.Resets, Start: output.Time(g.Start), Paused: g.Paused, OldRowsUntil: output.Time(g.OldRowsUntil),
		ExternalPositions: g.ExternalPositions, NoReplay: g.NoReplay, RowTable: g.RowTable, Members: len(g.Members), Shards: len(g.Shards), Owned: len(g.Shards) - len(g.Free()),
		LastBurst: output.Time(g.LastBurst),
	}
	for _, m := range g.Members {
		if m.Dead {
			l.Dead++
		}
	}
	if why := g.Stopped; why != nil {
		l.Stopped = &stoppedLine{
			Aggregate: nameOf(why.Aggregate), Number: why.Number, Type: why.EventType, StoppedAt: output.Time(why.At), Reason: why.Reason,
		}
	}
	return l
}

func (l groupLine) state() string {
	switch {
	case l.Stopped != nil:
		return "stopped"
	case l.Paused:
		return "paused"
	case l.LastBurst != "":
		return "bursts"
	case l.Owned == 0:
		return "idle" // no member owns a shard
	case l.Dead == l.Members:
		return "dead"
	}
	return "active"
}

func (l groupLine) members() string {
	if l.Dead > 0 {
		return fmt.Sprintf("%d (%d dead)", l.Members, l.Dead)
	}
	return strconv.Itoa(l.Members)
}

// mostSkipped is the maximum number of skipped events of a group that are counted.
const mostSkipped = 100

func (l *groupLine) countSkipped(ctx context.Context, g *groups.Group) error {
	for _, err := range g.Skipped(ctx, aggregate.ID{}, 0) {
		if err != nil {
			return err
		}
		if l.Skipped == mostSkipped {
			l.SkippedMore = true
			return nil
		}
		l.Skipped++
	}
	return nil
}

func (l groupLine) skipped() string {
	if l.SkippedMore {
		return output.Count(l.Skipped) + "+"
	}
	return output.Count(l.Skipped)
}

var groupColumns = []output.Column[groupLine]{
	{Name: "GROUP", Cell: func(g groupLine) string { return g.Group }},
	{Name: "TOPIC", Cell: func(g groupLine) string { return g.Topic }},
	{Name: "STATE", Cell: groupLine.state},
	{Name: "MEMBERS", Cell: groupLine.members},
	{Name: "SHARDS", Cell: func(g groupLine) string { return fmt.Sprintf("%d/%d", g.Owned, g.Shards) }},
	{Name: "LAG", Cell: func(g groupLine) string { return g.events() }},
	{Name: "AGE", Cell: func(g groupLine) string { return g.age() }},
	{Name: "BEHIND", Cell: func(g groupLine) string { return g.aggregates() }},
	{Name: "PARKED", Cell: func(g groupLine) string { return g.parked() }},
	{Name: "SKIPPED", Cell: groupLine.skipped},
}

var groupShardColumns = []output.Column[groupShardLine]{
	{Name: "SHARD", Cell: func(s groupShardLine) string { return fmt.Sprintf("%s-%d", s.Topic, s.Shard) }},
	{Name: "OWNER", Cell: func(s groupShardLine) string {
		if s.Owner == 0 {
			return "-"
		}
		owner := strings.TrimSuffix(strconv.FormatUint(s.Owner, 10)+" "+s.OwnerName, " ")
		if s.OwnerDead {
			owner += " (dead)"
		}
		return owner
	}},
	{Name: "EPOCH", Cell: func(s groupShardLine) string { return strconv.FormatUint(s.Epoch, 10) }},
	{Name: "LAG", Cell: func(s groupShardLine) string { return s.events() }},
	{Name: "AGE", Cell: func(s groupShardLine) string { return s.age() }},
	{Name: "BEHIND", Cell: func(s groupShardLine) string { return s.aggregates() }},
	{Name: "PARKED", Cell: func(s groupShardLine) string { return s.parked() }},
}

func (a *app) groups() *cobra.Command {
	exact, watch, every := false, false, 2*time.Second
	cmd := &cobra.Command{
		Use:   "groups [GROUP [TOPIC]] [flags]",
		Short: "List the consumer groups with their lag",
		Long: `List all consumer groups, the groups with one name, or one group with its shards.

  STATE    active, bursts (subscriber.Burst does the work), idle (no member owns a shard), dead (its
           members have crashed), paused by an operator, or stopped by an event that kept failing
           (subscriber.Stop). The command "groups GROUP TOPIC" shows that event.
  MEMBERS  number of members, and how many of them are dead
  SHARDS   shards that members own, and all shards
  LAG      number of events that the group has not handled
  AGE      age of the oldest of these events
  BEHIND   number of aggregates with such events
  PARKED   number of parked aggregates: they wait for an operator
  SKIPPED  number of events that were skipped or deferred, up to 100; the command skipped lists them
  OWNER    member that owns a shard: its number, host and process (subscriber.Config.MemberName)

A member is dead if it has sent no heartbeat for longer than its LeaseDuration. The times are by its
clock and the clock of this machine, corrected by the times in DynamoDB's replies. Another member
takes over its shards. If there is no other member, it stays in the list and keeps its shards until a
member starts.

The lag is an estimate. If a group is far behind, only the next events of each shard are read, and a
+ shows that there are more. The estimate costs about two read units for a shard with little to do,
and less than 250 for a shard with much to do. --exact compares all aggregates with the group's
positions; group catch-up waits until none is left. In the classic layout this costs half a read unit
for each 4 KB of heads, including states. In the packed layout it costs half a unit or more for each
aggregate. A group with external positions, such as in an SQL database, has no lag here.

--watch shows the list again every two seconds, or every --interval, until interrupted. Each time has
the same cost. A terminal is redrawn; otherwise the lists follow each other after an empty line.`,
		Example: "  millrace groups\n  millrace groups --watch --interval 5s\n  millrace groups order-history order --exact\n  millrace groups --json | jq 'select(.seconds > 60)'",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 2 {
				return fmt.Errorf("groups does not take the argument %q", args[2])
			}
			return nil
		},
		RunE: a.does(a.aboutTopic(1, func(cmd *cobra.Command, args []string) error {
			switch {
			case every <= 0:
				return wrongUsage("--interval is %s: want more than 0", every)
			case cmd.Flags().Changed("interval") && !watch:
				return wrongUsage("--interval needs --watch: without it the groups are shown once")
			}
			g, err := a.openGroups(cmd.Context())
			if err != nil {
				return err
			}
			show := func(ctx context.Context) error { return a.runGroups(ctx, g, args, exact) }
			if len(args) == 2 {
				show = func(ctx context.Context) error { return a.runGroup(ctx, g.Of(args[0], args[1]), exact) }
			}
			if watch {
				return a.watch(cmd.Context(), every, show)
			}
			return show(cmd.Context())
		})),
	}
	cmd.Flags().BoolVar(&watch, "watch", false, "show the list again at an interval, until interrupted")
	cmd.Flags().DurationVar(&every, "interval", every, "pause between two lists, with --watch")
	cmd.Flags().BoolVar(&exact, "exact", false, "compare all heads with the positions")
	return cmd
}

func (a *app) openGroups(ctx context.Context, options ...groups.Option) (*groups.Groups, error) {
	j, err := a.open(ctx)
	if err != nil {
		return nil, err
	}
	return groups.New(j, options...), nil
}

// replayFlag adds the flag --replay to a command, and returns the option that it stands for.
func replayFlag(cmd *cobra.Command) func() groups.Option {
	replay := cmd.Flags().Bool("replay", false, "also if the group protects its events from a replay: their effects happen again")
	return func() groups.Option {
		if *replay {
			return groups.WithReplay()
		}
		return nil
	}
}

// openGroup returns the handle of a group on a topic.
func (a *app) openGroup(ctx context.Context, name, topic string, options ...groups.Option) (*groups.Group, error) {
	g, err := a.openGroups(ctx, options...)
	if err != nil {
		return nil, err
	}
	return g.Of(name, topic), nil
}

// runGroups lists all groups, or the groups with a name.
func (a *app) runGroups(ctx context.Context, g *groups.Groups, name []string, exact bool) error {
	all, err := g.List(ctx) // it returns some groups also with an error
	rows := output.NewRows(a.env.Out, a.json, groupColumns...)
	shown := false
	for _, one := range all {
		if len(name) > 0 && one.Name != name[0] {
			continue
		}
		shown = true
		handle := g.Of(one.Name, one.Topic)
		lag, failed := a.lag(ctx, handle, one, exact)
		if failed != nil {
			return errors.Join(rows.Flush(), failed)
		}
		line := newGroupLine(one)
		if lag != nil {
			line.lagLine = newLagLine(lag.Lag, a.env.Now())
		}
		if failed := line.countSkipped(ctx, handle); failed != nil {
			return errors.Join(rows.Flush(), failed)
		}
		if err := rows.Print(line); err != nil {
			return err
		}
	}
	switch {
	case err != nil:
	case !shown && len(name) > 0:
		err = fmt.Errorf("%s: %w", printable.Text(name[0]), groups.ErrNoGroup)
	case !shown:
		a.note("No consumer groups. A group is created when it first subscribes.")
	}
	return errors.Join(rows.Flush(), err)
}

// runGroup shows a group with its shards.
func (a *app) runGroup(ctx context.Context, g *groups.Group, exact bool) error {
	one, err := g.Status(ctx)
	if err != nil {
		return err
	}
	lag, err := a.lag(ctx, g, one, exact)
	if err != nil {
		return err
	}
	now := a.env.Now()
	line := newGroupLine(one)
	if lag != nil {
		line.lagLine = newLagLine(lag.Lag, now)
	}
	if err := line.countSkipped(ctx, g); err != nil {
		return err
	}
	if line.LastBurst != "" {
		due, err := g.NextDue(ctx)
		if err != nil {
			return err
		}
		line.NextDue = output.Time(due)
	}
	if err := a.printGroup(line); err != nil {
		return err
	}
	if !a.json {
		_, _ = fmt.Fprintln(a.env.Out)
	}
	members := map[uint64]groups.Member{}
	for _, m := range one.Members {
		members[m.Number] = m
	}
	rows := output.NewRows(a.env.Out, a.json, groupShardColumns...)
	for i, s := range one.Shards {
		owner := members[s.Owner]
		shard := groupShardLine{
			Kind: "group_shard", Group: g.Name(), Topic: g.Topic(), Shard: s.Number, Owner: s.Owner, OwnerName: owner.Name,
			OwnerDead: owner.Dead, Epoch: s.Epoch,
		}
		if lag != nil && i < len(lag.Shards) {
			shard.lagLine = newLagLine(lag.Shards[i].Lag, now)
		}
		if err := rows.Print(shard); err != nil {
			return err
		}
	}
	return rows.Flush()
}

// printGroup prints a group by itself.
func (a *app) printGroup(l groupLine) error {
	start := l.Start
	if start == "" {
		start = "the beginning"
	}
	fields := []output.Field{
		{Name: "group", Value: l.Group},
		{Name: "topic", Value: l.Topic},
		{Name: "state", Value: l.state()},
		{Name: "members", Value: l.members()},
		{Name: "shards", Value: fmt.Sprintf("%d owned of %d", l.Owned, l.Shards)},
		{Name: "began at", Value: start},
		{Name: "resets", Value: strconv.FormatUint(l.Resets, 10)},
		{Name: "old rows until", Value: l.OldRowsUntil},
		{Name: "last burst", Value: l.LastBurst},
		{Name: "next due", Value: l.NextDue},
	}
	if why := l.Stopped; why != nil {
		event := fmt.Sprintf("event %d of %s %s", why.Number, why.Aggregate.Type, why.Aggregate.Value)
		if why.Type != "" {
			event += " (" + why.Type + ")"
		}
		fields = append(fields, output.Field{Name: "stopped by", Value: event}, output.Field{Name: "stopped at", Value: why.StoppedAt},
			output.Field{Name: "reason", Value: why.Reason})
	}
	if l.ExternalPositions {
		fields = append(fields, output.Field{Name: "positions", Value: "external, in a store of the members"})
	}
	if l.RowTable != "" {
		fields = append(fields, output.Field{Name: "positions", Value: "rows of table " + l.RowTable})
	}
	if l.lagLine != nil {
		fields = append(fields, output.Field{Name: "lag", Value: l.text()},
			output.Field{Name: "age", Value: l.age()},
			output.Field{Name: "parked", Value: output.Counted(l.Parked, "aggregate", "aggregates")})
	}
	return a.line(l, append(fields, output.Field{Name: "skipped", Value: l.skipped()})...)
}
