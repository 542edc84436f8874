package packed

import (
	"context"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"golang.org/x/sync/errgroup"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/internal/dynamo"
	"github.com/millrace-dev/millrace/internal/storage"
	"github.com/millrace-dev/millrace/internal/table"
)

// A snapshot keeps up to mostCommands command ids. If there are more, it keeps the latest
// fewerCommands, and the others become guards.
const (
	mostCommands  = 128
	fewerCommands = 64
)

// commandsOf returns the commands that a snapshot keeps. The row may be nil.
func (row *snapshotRow) commandsOf() *storage.Commands {
	c := &storage.Commands{}
	if row == nil {
		return c
	}
	c.Guards = row.guards
	for i := range row.commands {
		c.Add(row.commands[i].dated())
	}
	return c
}

// commands returns the commands of an item: its noted commands without events, and its own command.
func (it *item) commands() (commands []storage.DatedCommand) {
	for i := range it.noted {
		commands = append(commands, it.noted[i].dated())
	}
	if it.command == "" {
		return commands
	}
	c := storage.DatedCommand{
		Command: storage.Command{ID: it.command, CommitID: it.commitID, First: it.first, Version: it.last()},
		At:      time.UnixMilli(it.millis).UTC(),
		Keep:    durationOf(it.hold),
	}
	if it.partOf.last > 0 {
		c.First, c.Version = it.partOf.first, it.partOf.last
	}
	return append(commands, c)
}

// addTo adds the commands of an item to those known before it.
func (it *item) addTo(known *storage.Commands) {
	for _, c := range it.commands() {
		known.Add(c)
	}
	known.Guards = known.Guards || it.guards
	known.Version = it.last()
}

// isOf reports whether a commit wrote the item, or whether the item notes the commit's command.
func (it *item) isOf(commitID string) bool {
	return it.commitID == commitID || slices.ContainsFunc(it.noted, func(k keptCommand) bool { return k.dated().CommitID == commitID })
}

// commands reads the command ids of an aggregate: those of its latest snapshot, and those of later
// commits, without reading their events.
func (p *layout) commands(ctx context.Context, id aggregate.ID) (*storage.Commands, error) {
	row, err := p.latest(ctx, id)
	if err != nil {
		return nil, err
	}
	from := uint64(1)
	if row != nil && row.snapshot != nil {
		sound, err := p.isSound(ctx, id, row)
		if err != nil {
			return nil, err
		}
		if sound {
			from = row.from
		} else {
			row = nil
		}
	}
	found := row.commandsOf()
	err = p.query(ctx, id, strconv.FormatUint(from, 10), endOfNumbers, p.withoutEvents, func(it *item, err error) error {
		if err != nil {
			return err
		}
		it.addTo(found)
		return nil
	})
	return found, err
}

func (p *layout) Command(ctx context.Context, id aggregate.ID, commandID string) (storage.Command, bool, error) {
	commands, err := p.commands(ctx, id)
	if err != nil {
		return storage.Command{}, false, err
	}
	return p.executed(ctx, id, commands, commandID)
}

// executed searches the commands of an aggregate for an id, and its guards if it has any. The
// command has the id as the caller passed it.
func (p *layout) executed(ctx context.Context, id aggregate.ID, commands *storage.Commands, commandID string) (storage.Command, bool, error) {
	key := p.stored(commandID)
	if c, known := commands.Find(key); known || !commands.Guards {
		if known {
			c.ID = commandID
		}
		return c, known, nil
	}
	it, err := p.GetItem(ctx, p.Config.Tables.Journal, p.guardKey(id, key))
	if err != nil || it == nil {
		return storage.Command{}, false, err
	}
	c := storage.Command{ID: commandID}
	var firstOK, versionOK, commitOK bool
	_, c.CommitID, commitOK = commitOf(it[attrCommit])
	c.First, firstOK = table.UintOf(it[attrFirst])
	c.Version, versionOK = table.UintOf(it[attrLast])
	stored, ok := commandIn(it[attrID])
	if !ok || !firstOK || !versionOK || !commitOK {
		return storage.Command{}, false, p.corrupt(p.Config.Tables.Journal, it, "is not the guard of a command")
	}
	return c, stored == key, nil
}

// keepCommands adds the command ids to the row of a snapshot. Before the row is stored, ids for
// which it has no room become guards. The receipt returns the ids that the row keeps.
func (p *layout) keepCommands(ctx context.Context, c *commit, row table.Item) error {
	commands := c.known
	if commands == nil || commands.Version != c.Receipt.Version {
		var err error
		if commands, err = p.commands(ctx, c.Aggregate); err != nil {
			return err
		}
	}
	kept, err := p.putCommands(ctx, c.Aggregate, row, commands, c.Receipt.Version)
	if err == nil {
		c.Receipt.Commands = kept
	}
	return err
}

// putCommands adds the commands up to a version to the row of a snapshot, and writes guards for
// those that have no room. It returns the commands that the row keeps.
func (p *layout) putCommands(ctx context.Context, id aggregate.ID, row table.Item, commands *storage.Commands, version uint64) (*storage.Commands, error) {
	kept := storage.Commands{Guards: commands.Guards}
	var dated []storage.DatedCommand
	for _, d := range commands.Dated() {
		if d.IsKept(p.Config.Now()) && d.Version <= version {
			dated = append(dated, d)
		}
	}
	if n := len(dated); n > mostCommands {
		dropped := dated[:n-fewerCommands]
		if err := p.guardInOrder(ctx, id, dropped); err != nil {
			return nil, err
		}
		dated, kept.Guards = dated[len(dropped):], true
	}
	if kept.Guards {
		row[attrGuards] = &types.AttributeValueMemberBOOL{Value: true}
	}
	var err error
	if len(dated) > 0 {
		row[attrID], err = p.commandsValue(dated)
	}
	return kept.With(version, dated...), err
}

// commandIn returns the stored command id of an attribute.
func commandIn(v types.AttributeValue) (stored string, ok bool) {
	if digest, ok := table.BytesOf(v); ok {
		return string(digest), true
	}
	return table.StringOf(v)
}

// guarded knows for some aggregates the version up to which all commands have guards, although no
// snapshot may say so yet. There may be more commands than guards can be written in the time that a
// snapshot has. The next snapshot then continues. The zero value is usable.
type guarded struct {
	mu   sync.Mutex
	upTo map[aggregate.ID]uint64
}

// mostGuarded is the number of aggregates in guarded.
const mostGuarded = 1000

func (g *guarded) version(id aggregate.ID) (version uint64, known bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	version, known = g.upTo[id]
	return version, known
}

func (g *guarded) note(id aggregate.ID, version uint64) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.upTo == nil || len(g.upTo) >= mostGuarded {
		g.upTo = map[aggregate.ID]uint64{}
	}
	g.upTo[id] = max(g.upTo[id], version)
}

// guardInOrder writes guards for commands, which are in the order of their commits. If it ends
// early, the next call for the aggregate continues there.
func (p *layout) guardInOrder(ctx context.Context, id aggregate.ID, commands []storage.DatedCommand) error {
	if done, known := p.guarded.version(id); known {
		for len(commands) > 0 && commands[0].Version <= done {
			commands = commands[1:]
		}
	}
	for some := range slices.Chunk(commands, guardsTogether) {
		if err := p.guard(ctx, id, some); err != nil {
			return err
		}
		if last := some[len(some)-1].Version; last > 0 { // others may have the same version
			p.guarded.note(id, last-1)
		}
	}
	return nil
}

// guardsTogether is the number of guards after which guardInOrder notes how far it has come.
const guardsTogether = 4 * guardsAtOnce

// guardsAtOnce is the number of guards that are written at the same time.
const guardsAtOnce = 16

// guard stores each command in an item of its own.
func (p *layout) guard(ctx context.Context, id aggregate.ID, commands []storage.DatedCommand) error {
	name := p.Config.Tables.Journal
	writes, ctx := errgroup.WithContext(ctx)
	writes.SetLimit(guardsAtOnce)
	for _, d := range commands {
		writes.Go(func() error {
			it := p.guardKey(id, d.ID)
			it[attrID] = p.commandValue(d.ID)
			it[attrCommit] = commitValue(d.CommitID)
			it[attrFirst] = table.NumberValue(d.First)
			it[attrLast] = table.NumberValue(d.Version)
			if d.Keep > 0 { // DynamoDB removes the guard afterwards; the commit stays
				it[p.Config.Attributes.TTL] = table.NumberValue(d.At.Add(d.Keep).Unix() + 1)
			}
			_, err := p.Client.PutItem(ctx, &dynamodb.PutItemInput{TableName: &name, Item: it})
			return dynamo.Explain(err, name)
		})
	}
	return writes.Wait()
}
