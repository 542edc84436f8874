package journal

import (
	"context"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/millrace-dev/millrace/internal/dynamo"
	"github.com/millrace-dev/millrace/internal/engine"
)

// Journal is an open journal. It is safe for concurrent use.
type Journal struct{ engine *engine.Engine }

// Open returns the journal of tables that [Create] or [Adopt] has prepared. It reads the descriptor
// with one strongly consistent read and compares it with config. If config leaves out the number of
// shards, the layout, the unit of times or the required encodings, Open takes them from the
// descriptor. While DynamoDB throttles, fails or cannot be reached, Open tries again for up to 30
// seconds.
//
// Errors: [*ConfigError], [ErrTableMissing], [ErrNoDescriptor], [*DescriptorMismatchError],
// [*CorruptItemError], [ErrAccess], [ErrThrottled], [ErrUnavailable], and the error of ctx.
func Open(ctx context.Context, client Client, config Config) (*Journal, error) {
	j, err := connect(client, config)
	if err != nil {
		return nil, err
	}
	var stored engine.Descriptor
	var asOf time.Time
	err = dynamo.Start(ctx, func(ctx context.Context) (err error) {
		asOf = time.Now()
		if config.Layout == "" {
			stored, err = j.FindDescriptor(ctx)
		} else {
			stored, err = j.GivenDescriptor(ctx)
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("open journal: %w", err)
	}
	if j.Config.Shards == 0 {
		j.Config.Shards = stored.Shards
	}
	if config.Classic.OccurredAtUnit == 0 {
		j.Config.OccurredAtUnit = stored.Unit
	}
	if len(config.RequiredEncodings) == 0 {
		j.Config.RequiredEncodings = stored.RequiredEncodings
	}
	if err := checkLayout(j.Config.Layout, config.Classic); err != nil {
		return nil, fmt.Errorf("open journal: %w", err)
	}
	if err := stored.Matches(engine.Describe(&j.Config)); err != nil {
		return nil, fmt.Errorf("open journal: %w", err)
	}
	j.Config.RequiredByType = stored.RequiredByType
	j.Layout.Opened(stored, asOf)
	return &Journal{j}, nil
}

// connect returns an engine for a config.
func connect(client Client, config Config) (*engine.Engine, error) {
	if sdk, ok := client.(*dynamodb.Client); client == nil || ok && sdk == nil {
		return nil, &ConfigError{Field: "client", Reason: "is nil: pass a *dynamodb.Client"}
	}
	if err := config.Validate(); err != nil {
		return nil, err
	}
	config.setDefaults()
	return engine.New(client, config.settings(), layouts), nil
}

// Shards returns the number of logical shards of each aggregate type.
func (j *Journal) Shards() int { return j.engine.Config.Shards }

// Client returns the client that was passed to [Open].
func (j *Journal) Client() Client { return j.engine.Given }

// Config returns the configuration with all defaults, and with the values that [Open] took from the
// descriptor. In the layout [Packed] its field Classic is empty.
func (j *Journal) Config() Config { return configOf(&j.engine.Config) }

// Internal returns the engine of the journal, and nil for nil. It is for the packages of this
// module: no program can import its package, and it may change in any release.
func (j *Journal) Internal() *engine.Engine {
	if j == nil {
		return nil
	}
	return j.engine
}
