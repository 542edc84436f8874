package command

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/millrace-dev/millrace/cmd/millrace/internal/output"
	"github.com/millrace-dev/millrace/subscriber/groups"
)

// groupLine is a consumer group's work on a topic as JSON.
type groupLine struct {
	Kind   string `json:"kind"` // "group"
	Group  string `json:"group"`
	Topic  string `json:"topic"`
	Resets uint64 `json:"resets"`
	Start  string `json:"start,omitempty"` // none: the beginning
	Paused bool   `json:"paused"`
	// Stopped is the event that has paused the group; none where an operator has.
	Stopped *stoppedLine `json:"stopped,omitempty"`
	Members int          `json:"members"`
	// Dead are those of the members that have sent no heartbeat for longer than their lease.
	Dead   int `json:"dead,omitempty"`
	Shards int `json:"shards"`
	Owned  int `json:"owned"` // shards that a member owns
	// ExternalPositions: the positions are in a store of the members' own, so there is no lag.
	ExternalPositions bool `json:"external_positions,omitempty"`
	*lagLine
}

// stoppedLine is the event by which a group was stopped.
type stoppedLine struct {
	Aggregate aggregateName `json:"aggregate"`
	Number    uint64        `json:"number"`
	Type      string        `json:"type"` // empty where the event could not be read
	StoppedAt string        `json:"stopped_at"`
	Reason    string        `json:"reason"`
}

// groupShardLine is a logical shard of a group.
type groupShardLine struct {
	Kind  string `json:"kind"` // "group_shard"
	Group string `json:"group"`
	Topic string `json:"topic"`
	Shard int    `json:"shard"`
	Owner uint64 `json:"owner"` // number of a member; 0 while it is free
	// OwnerName is that of the member: by default the host's with the process id.
	OwnerName string `json:"owner_name,omitempty"`
	OwnerDead bool   `json:"owner_dead,omitempty"`
	Epoch     uint64 `json:"epoch"`
	*lagLine
}

func newGroupLine(g groups.Group) groupLine {
	l := groupLine{
		Kind: "group", Group: g.Name, Topic: g.Topic, Resets: g.Resets, Start: output.Time(g.Start), Paused: g.Paused,
		ExternalPositions: g.ExternalPositions, Members: len(g.Members), Shards: len(g.Shards), Owned: len(g.Shards) - len(g.Free()),
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
	case l.Owned == 0:
		return "idle" // nobody works
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
		Long: `List the consumer groups, those of one name, or one with its shards.

STATE is active, idle (no member owns a shard), dead (its members have crashed), paused by an operator, or stopped by an event that kept
failing (subscriber.Stop), which "groups GROUP TOPIC" shows.

A member is dead if it has sent no heartbeat for longer than its LeaseDuration, by its clock and that of this machine, each corrected by
the times in DynamoDB's replies. Another member takes over its shards. If there is no other, it stays in the list, and keeps its shards
until one starts.

OWNER is the member that owns a shard: its number, host and process (subscriber.Config.MemberName).

SHARDS are those that members own, of all. LAG is how many events the group has not handled yet, AGE how long the oldest of them has
been waiting, BEHIND how many aggregates have such events, and PARKED how many of these wait until someone decides.

The lag is an estimate: of a group that is far behind only the next events of each shard are looked at, and a + says that there are
more. It costs about two read units for each shard that has little to do, and under a hundred for one that has much. --exact compares
all aggregates with the group's positions. In the classic layout that costs half a read unit for each 4 KB of heads, states included; in
the packed layout half a unit or more for each aggregate. There is no lag of a group that keeps its positions in a store of its own, such
as an SQL database.

--watch shows all of it again every two seconds, or --interval, until interrupted, and costs as much each time. It redraws a terminal;
elsewhere it prints the list again, after an empty line.`,
		Example: "  millrace groups\n  millrace groups --watch --interval 5s\n  millrace groups order-history order --exact\n  millrace groups --json | jq 'select(.seconds > 60)'",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 2 {
				return fmt.Errorf("groups has no use for %q", args[2])
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
				show = func(ctx context.Context) error { return a.runGroup(ctx, g, args[0], args[1], exact) }
			}
			if watch {
				return a.watch(cmd.Context(), every, show)
			}
			return show(cmd.Context())
		})),
	}
	cmd.Flags().BoolVar(&watch, "watch", false, "show it again and again, until interrupted")
	cmd.Flags().DurationVar(&every, "interval", every, "pause between two looks, with --watch")
	cmd.Flags().BoolVar(&exact, "exact", false, "compare all heads with the positions")
	return cmd
}

func (a *app) openGroups(ctx context.Context) (*groups.Groups, error) {
	j, err := a.open(ctx)
	if err != nil {
		return nil, err
	}
	return groups.New(j), nil
}

// runGroups lists all groups, or those of a name.
func (a *app) runGroups(ctx context.Context, g *groups.Groups, name []string, exact bool) error {
	all, err := g.List(ctx) // what could be read comes beside an error
	rows := output.NewRows(a.env.Out, a.json, groupColumns...)
	shown := false
	for _, one := range all {
		if len(name) > 0 && one.Name != name[0] {
			continue
		}
		shown = true
		lag, failed := a.lag(ctx, g, one, exact)
		if failed != nil {
			return errors.Join(rows.Flush(), failed)
		}
		line := newGroupLine(one)
		if lag != nil {
			line.lagLine = newLagLine(lag.Lag, a.env.Now())
		}
		if err := rows.Print(line); err != nil {
			return err
		}
	}
	switch {
	case err != nil:
	case !shown && len(name) > 0:
		err = fmt.Errorf("%s: %w", name[0], groups.ErrNoGroup)
	case !shown:
		a.note("No consumer groups. One comes into being when it first subscribes.")
	}
	return errors.Join(rows.Flush(), err)
}

// runGroup shows a group with its shards.
func (a *app) runGroup(ctx context.Context, g *groups.Groups, name, topic string, exact bool) error {
	one, err := g.Get(ctx, name, topic)
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
			Kind: "group_shard", Group: name, Topic: topic, Shard: s.Number, Owner: s.Owner, OwnerName: owner.Name,
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
		fields = append(fields, output.Field{Name: "positions", Value: "in a store of the members' own"})
	}
	if l.lagLine != nil {
		fields = append(fields, output.Field{Name: "lag", Value: l.events() + " events of " + output.Counted(l.Aggregates, "aggregate", "aggregates")},
			output.Field{Name: "age", Value: l.age()},
			output.Field{Name: "parked", Value: output.Counted(l.Parked, "aggregate", "aggregates")})
	}
	return a.line(l, fields...)
}
