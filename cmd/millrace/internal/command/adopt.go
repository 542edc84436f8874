package command

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/millrace-dev/millrace/cmd/millrace/internal/store"
	"github.com/millrace-dev/millrace/journal"
)

type adoptOptions struct {
	shards         int
	resolver, unit string
}

// timeUnits are the units of times, by their names.
var timeUnits = map[string]time.Duration{
	"seconds": time.Second, "milliseconds": time.Millisecond, "microseconds": time.Microsecond, "nanoseconds": time.Nanosecond,
}

func (a *app) adopt() *cobra.Command {
	var o adoptOptions
	cmd := &cobra.Command{
		Use:   "adopt --shards NUMBER --resolver NAME [flags]",
		Short: "Adopt tables that an event-store-adapter program created",
		Long: `Adopt the journal and snapshot tables of another program of the event-store-adapter family.

The command verifies the keys and indexes, the shard of each snapshot, and the times of up to 1,000
events. Then it creates the checkpoint table, and stores the descriptor in the journal table. It does
not change events and snapshots. It can be run again.

The journal table needs the tail index; docs/howto/share-tables.md says how to add it. Keys, indexes
and the attributes in them may have any names. If the attributes payload, version or ttl have other
names, call journal.Adopt in a program.`,
		Example: "  millrace adopt --shards 32 --resolver js-hash\n" +
			"  millrace adopt --shards 64 --resolver fnv1a-64 --journal-table orders-journal --snapshot-table orders-snapshot",
		Args: wants(),
		RunE: a.does(func(cmd *cobra.Command, _ []string) error {
			config, err := o.config()
			if err != nil {
				return err
			}
			config.Tables = a.tables.Tables
			config.Tables.Snapshot = a.tables.newSnapshot()
			return a.runAdopt(cmd.Context(), config)
		}),
	}
	flags := cmd.Flags()
	flags.IntVar(&o.shards, "shards", 0, "`number` of shards of the other program")
	flags.StringVar(&o.resolver, "resolver", "", "key resolver of the other program: "+resolverNames())
	flags.StringVar(&o.unit, "time-unit", "", "unit of the times of events: seconds, milliseconds, microseconds or nanoseconds; default is the unit of the stored events")
	return cmd
}

func resolverNames() string {
	return strings.Join(slices.Sorted(maps.Keys(store.Resolvers)), ", ")
}

func (o adoptOptions) config() (journal.Config, error) {
	c := journal.Config{Shards: o.shards}
	if o.shards < 1 {
		return c, wrongUsage("adopt needs --shards: the number of shards of the other program")
	}
	c.Classic.Resolver, c.Classic.OccurredAtUnit = store.Resolvers[o.resolver], timeUnits[o.unit]
	switch {
	case c.Classic.Resolver == nil:
		return c, wrongUsage("--resolver is %q: want the resolver of the other program, one of %s", o.resolver, resolverNames())
	case c.Classic.OccurredAtUnit == 0 && o.unit != "":
		return c, wrongUsage("--time-unit is %q: want seconds, milliseconds, microseconds or nanoseconds", o.unit)
	}
	if err := c.Validate(); err != nil {
		return c, wrongUsage("%v", err)
	}
	return c, nil
}

func (a *app) runAdopt(ctx context.Context, config journal.Config) error {
	client, err := a.connect(ctx)
	if err != nil {
		return err
	}
	progress := a.showProgress()
	progress.Show(func(time.Duration) string { return "comparing all snapshots with the resolver and the shard count" })
	err = store.Adopt(ctx, client, config)
	progress.Done()
	if err != nil {
		return tableMissing(err, "adopt needs tables that exist, with the tail index: see https://github.com/millrace-dev/millrace/blob/main/docs/howto/share-tables.md")
	}
	if !a.json {
		a.note("Adopted the tables on %s.", a.place)
	}
	if err := a.runDescribe(ctx); err != nil {
		return fmt.Errorf("the tables are adopted: %w", err)
	}
	return nil
}
