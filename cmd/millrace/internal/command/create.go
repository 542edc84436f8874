package command

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/spf13/cobra"

	"github.com/millrace-dev/millrace/cmd/millrace/internal/output"
	"github.com/millrace-dev/millrace/cmd/millrace/internal/store"
	"github.com/millrace-dev/millrace/journal"
)

// defaultShards is the number that journal.Config recommends.
const defaultShards = 16

const missingLayout = "new tables need --layout, which never changes: packed is for new applications and costs less, " +
	"classic is for tables that event-store-adapter programs share"

type createOptions struct {
	shards                int
	layout, billing       string
	required              []string
	readUnits, writeUnits int64
}

func (a *app) create() *cobra.Command {
	var o createOptions
	cmd := &cobra.Command{
		Use:   "create [flags]",
		Short: "Create the tables",
		Long: `Create the journal, snapshot and checkpoint tables with their indexes if they are missing, and wait
until they are active. It can be run again: it verifies existing tables, and does not change them,
except that it turns on time to live after "millrace restored". Settings without a flag are taken
from existing tables.

The shard count, the layout and the required encodings can never be changed afterwards.`,
		Example: "  millrace create --layout packed --shards 16\n  millrace create --layout packed --prefix shop-\n" +
			"  millrace create --layout packed --journal-table orders-journal --snapshot-table orders-snapshot --checkpoint-table orders-checkpoint",
		Args: wants(),
		RunE: a.does(func(cmd *cobra.Command, _ []string) error {
			config, err := o.config(cmd)
			if err != nil {
				return err
			}
			config.Tables = a.tables.Tables
			return a.runCreate(cmd.Context(), config)
		}),
	}
	flags := cmd.Flags()
	flags.IntVar(&o.shards, "shards", 0, "`number` of logical shards, which never changes; each takes about 1,000 write units per second; default is 16")
	flags.StringVar(&o.layout, "layout", "", "layout of events and snapshots: packed, which costs less and is for new applications, or classic, "+
		"which event-store-adapter programs can share; new tables need it, and it never changes")
	flags.StringSliceVar(&o.required, "require-encoding", nil, "`name` of an encoding that every payload must have, such as aes-gcm, which never changes; "+
		"or type=name for the payloads of one aggregate type, such as person=aes-gcm, which can be added while the type has no aggregates")
	flags.StringVar(&o.billing, "billing", "on-demand", "on-demand or provisioned")
	flags.Int64Var(&o.readUnits, "read-units", 0, "provisioned read `units` of each table and index")
	flags.Int64Var(&o.writeUnits, "write-units", 0, "provisioned write `units` of each table and index")
	return cmd
}

func (o createOptions) config(cmd *cobra.Command) (journal.Config, error) {
	c := journal.Config{Shards: o.shards, Layout: journal.Layout(o.layout)}
	for _, required := range o.required {
		if i := strings.LastIndexByte(required, '='); i < 0 {
			c.RequiredEncodings = append(c.RequiredEncodings, required)
		} else {
			if c.RequiredByType == nil {
				c.RequiredByType = map[string][]string{}
			}
			c.RequiredByType[required[:i]] = append(c.RequiredByType[required[:i]], required[i+1:])
		}
	}
	if cmd.Flags().Changed("shards") && o.shards < 1 {
		return c, wrongUsage("--shards is %d: want 1 to 65536", o.shards)
	}
	if o.layout != "" && o.layout != string(journal.Classic) && o.layout != string(journal.Packed) {
		return c, wrongUsage("--layout is %q: want classic or packed", o.layout)
	}
	switch o.billing {
	case "on-demand":
		if o.readUnits != 0 || o.writeUnits != 0 {
			return c, wrongUsage("--read-units and --write-units need --billing provisioned")
		}
	case "provisioned":
		if o.readUnits < 1 || o.writeUnits < 1 {
			return c, wrongUsage("--billing provisioned needs --read-units and --write-units, each 1 or more")
		}
		c.Throughput = &types.ProvisionedThroughput{ReadCapacityUnits: &o.readUnits, WriteCapacityUnits: &o.writeUnits}
	default:
		return c, wrongUsage("--billing is %q: want on-demand or provisioned", o.billing)
	}
	if err := c.Validate(); err != nil {
		return c, wrongUsage("%v", err)
	}
	return c, nil
}

func (a *app) runCreate(ctx context.Context, config journal.Config) error {
	client, err := a.connect(ctx)
	if err != nil {
		return err
	}
	progress := a.showProgress()
	progress.Show(func(time.Duration) string { return "creating tables, which takes AWS up to a minute" })
	given := config
	config.RequiredByType = nil // Create adds it
	there, err := store.Open(ctx, client, config)
	config.RequiredByType = given.RequiredByType
	switch {
	case err == nil: // Create verifies more than Open: indexes, the checkpoint table
		config = there.Config()
		config.Throughput, config.RequiredByType = given.Throughput, given.RequiredByType
	case errors.Is(err, journal.ErrTableMissing), errors.Is(err, journal.ErrNoDescriptor):
		if config.Shards == 0 {
			config.Shards = defaultShards
		}
		if config.Layout == "" {
			progress.Done()
			return wrongUsage("%s", missingLayout)
		}
		config.Tables.Snapshot = a.tables.newSnapshot()
	default:
		progress.Done()
		return err
	}
	err = journal.Create(ctx, client, config)
	progress.Done()
	if err != nil {
		return err
	}
	if there == nil && !a.json {
		a.note("%s", a.created(config))
	}
	return a.runDescribe(ctx)
}

// created returns the text about new tables.
func (a *app) created(config journal.Config) string {
	return fmt.Sprintf("Created the tables on %s, with layout %s and %s. The layout and the shard count never change.",
		a.place, config.Layout, output.Counted(config.Shards, "shard", "shards"))
}
