package readmodel

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"sync"
	"time"

	"github.com/ThreeDotsLabs/watermill"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/millrace-dev/millrace/internal/dynamo"
	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/subscriber/groups"
)

// Client is what a [Model] needs of a *dynamodb.Client.
type Client interface {
	GetItem(context.Context, *dynamodb.GetItemInput, ...func(*dynamodb.Options)) (*dynamodb.GetItemOutput, error)
	UpdateItem(context.Context, *dynamodb.UpdateItemInput, ...func(*dynamodb.Options)) (*dynamodb.UpdateItemOutput, error)
}

// Config configures a [Model]. Name, Journal and Topics are required.
type Config struct {
	// Name is that of the read model, the same in all programs: letters, digits, underscore and
	// hyphen, at most 100.
	Name string
	// Journal is where the events come from.
	Journal *journal.Journal
	// Topics are what the read model consumes. Progress looks at all of them. [OpenExisting] can do
	// without.
	Topics []string
	// Forms are the forms of the read model that this program can build and query, oldest first. A
	// form is what its tables contain, by a name such as "2": letters, digits, dot, underscore and
	// hyphen, at most 100. [Model.Begin] begins the last one; [Model.Run] leaves generations of
	// other forms alone, and [Model.Serving] does not give them. Default: one form, "", which has
	// no name. For [OpenExisting] it is any form.
	Forms []string
	// Table keeps which generations there are. [CreateTable] makes it; read models can share one.
	// Default: "readmodel".
	Table string
	// Positions is the store in which the generations' groups keep their positions, such as a
	// *sqlprojection.Store for a read model in an SQL database. Default: none, as they are in the
	// checkpoint table.
	Positions groups.Positions
	// MaxAge is for how long [Model.Serving] takes what it read before for true. Default: 1 second;
	// negative to read each time.
	MaxAge time.Duration
	// Refresh is how often [Model.Run] looks for generations that have come or gone. Default: 1
	// second.
	Refresh time.Duration
	// MaxLag is by how many events a generation may be behind when it begins to serve, and MaxDelay
	// how long ago the first of them may have occurred, of those that are not parked. So what was
	// written just now does not keep it from serving, and what it has not got to yet, or is stuck
	// with, does. Defaults: 100 and 10 seconds.
	MaxLag   uint64
	MaxDelay time.Duration
	// Logger is told of consumers that ended with an error. Default: none.
	Logger watermill.LoggerAdapter
}

var (
	validName = regexp.MustCompile(`^[A-Za-z0-9_-]{1,100}$`)
	validForm = regexp.MustCompile(`^[A-Za-z0-9._-]{0,100}$`)
)

// validate takes a program's config, which says more than a tool's.
func (c *Config) validate(program bool) error {
	unfit := slices.IndexFunc(c.Forms, func(form string) bool { return !validForm.MatchString(form) })
	switch {
	case !validName.MatchString(c.Name):
		return &ConfigError{"Name", "is not 1 to 100 letters, digits, underscores and hyphens: it is a part of names of tables and groups"}
	case c.Journal == nil:
		return &ConfigError{"Journal", "is nil"}
	case unfit >= 0:
		return &ConfigError{"Forms", fmt.Sprintf("have %q, which is not up to 100 letters, digits, dots, underscores and hyphens", c.Forms[unfit])}
	case program && len(c.Topics) == 0 || slices.Contains(c.Topics, ""):
		return &ConfigError{"Topics", "are empty: name the aggregate types that are consumed"}
	case len(slices.Compact(slices.Sorted(slices.Values(c.Topics)))) < len(c.Topics):
		return &ConfigError{"Topics", "have one twice: name each once"}
	case c.Refresh < 0:
		return &ConfigError{"Refresh", "is negative"}
	case c.MaxDelay < 0:
		return &ConfigError{"MaxDelay", "is negative"}
	}
	if program && len(c.Forms) == 0 {
		c.Forms = []string{""}
	}
	if c.Table == "" {
		c.Table = DefaultTable
	}
	if c.MaxAge == 0 {
		c.MaxAge = time.Second
	}
	if c.Refresh == 0 {
		c.Refresh = time.Second
	}
	if c.MaxLag == 0 {
		c.MaxLag = 100
	}
	if c.MaxDelay == 0 {
		c.MaxDelay = 10 * time.Second
	}
	if c.Logger == nil {
		c.Logger = watermill.NopLogger{}
	}
	return nil
}

// Model is a read model in generations. It is safe for concurrent use, by any number of processes.
type Model struct {
	client Client
	config Config
	groups *groups.Groups

	mu     sync.Mutex
	cached state
	readAt time.Time
}

// Open returns a read model, and makes its first generation if it has none, which serves, of the
// last of [Config].Forms: a request or two. While DynamoDB throttles, fails or cannot be reached,
// it tries again for up to 30 seconds.
//
// Errors: [*ConfigError], [ErrCorrupt], [journal.ErrTableMissing], [journal.ErrAccess],
// [journal.ErrThrottled], [journal.ErrUnavailable], the context's.
func Open(ctx context.Context, client Client, config Config) (*Model, error) {
	m, err := newModel(client, config, true)
	if err != nil {
		return nil, err
	}
	err = dynamo.Start(ctx, func(ctx context.Context) error {
		_, err := m.change(ctx, "open", true, func(s state) (state, error) {
			if s.exists() {
				return s, errUnchanged
			}
			return state{serving: 1}.begin(m.newest(s)), nil
		})
		return err
	})
	if err != nil {
		return nil, err
	}
	return m, nil
}

func newModel(client Client, config Config, program bool) (*Model, error) {
	if client == nil {
		return nil, &ConfigError{"client", "is nil: pass a *dynamodb.Client"}
	}
	if err := config.validate(program); err != nil {
		return nil, err
	}
	var options []groups.Option
	if config.Positions != nil {
		options = append(options, groups.WithPositions(config.Positions))
	}
	return &Model{client: client, config: config, groups: groups.New(config.Journal, options...)}, nil
}

// Serving returns the generation that queries read: as it was read within [Config].MaxAge, or else
// now, strongly consistent. Where that fails and there is an older reading, it returns that, for
// both generations are kept up to date.
//
// Errors: [*FormError] if it is of a form that this program does not know, those of Open.
func (m *Model) Serving(ctx context.Context) (Generation, error) {
	m.mu.Lock()
	known, age := m.cached, time.Since(m.readAt)
	m.mu.Unlock()
	if known.exists() && age <= m.config.MaxAge {
		return m.readable(known)
	}
	if known.exists() { // and can be gone on with
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, time.Second)
		defer cancel()
	}
	s, err := m.current(ctx)
	if err != nil && known.exists() {
		m.config.Logger.Info("Cannot read which generation serves, goes on with the one that did", watermill.LogFields{"read_model": m.config.Name, "err": err})
		return m.readable(known)
	}
	if err != nil {
		return Generation{}, err
	}
	return m.readable(s)
}

func (m *Model) readable(s state) (Generation, error) {
	g := m.generation(s, s.serving)
	if !m.knows(g.Form) {
		return Generation{}, &FormError{Generation: g, Forms: m.config.Forms}
	}
	return g, nil
}

// knows reports whether this program can build and query a form.
func (m *Model) knows(form string) bool {
	return len(m.config.Forms) == 0 || slices.Contains(m.config.Forms, form)
}

// newest is the form to begin: the last that this program knows, or that of what serves if it knows
// any.
func (m *Model) newest(s state) string {
	if n := len(m.config.Forms); n > 0 {
		return m.config.Forms[n-1]
	}
	return s.forms[s.serving]
}
