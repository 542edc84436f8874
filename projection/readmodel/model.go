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

// Client is the part of a *dynamodb.Client that a [Model] uses.
type Client interface {
	GetItem(context.Context, *dynamodb.GetItemInput, ...func(*dynamodb.Options)) (*dynamodb.GetItemOutput, error)
	UpdateItem(context.Context, *dynamodb.UpdateItemInput, ...func(*dynamodb.Options)) (*dynamodb.UpdateItemOutput, error)
}

// Config configures a [Model]. Name, Journal and Topics are required.
type Config struct {
	// Name is the name of the read model, the same in all programs: up to 100 letters, digits,
	// underscores and hyphens.
	Name string
	// Journal is the journal of the events.
	Journal *journal.Journal
	// Topics are the topics that the read model consumes. Progress includes all of them. Optional
	// for [OpenExisting].
	Topics []string
	// Forms are the forms of the read model that this program can build and query, oldest first. A
	// form names what its tables contain, such as "2": up to 100 letters, digits, dots, underscores
	// and hyphens. [Model.Begin] begins the last one. [Model.Run] ignores generations of other
	// forms, and [Model.Serving] does not return them. Default: one form, "". For [OpenExisting]
	// the default is any form.
	Forms []string
	// Table is the table that holds the generations. [CreateTable] creates it; read models can
	// share one. Default: "readmodel".
	Table string
	// Positions is the store in which the groups of the generations keep their positions, such as a
	// *sqlprojection.Store for a read model in an SQL database. Default: the checkpoint table.
	Positions groups.Positions
	// MaxAge is the time for which [Model.Serving] returns an earlier result without a read.
	// Default: 1 second. A negative value means a read for each call.
	MaxAge time.Duration
	// Refresh is the pause between the polls of [Model.Run] for new and dropped generations.
	// Default: 1 second.
	Refresh time.Duration
	// MaxLag is the maximum number of events by which a generation may be behind when it begins to
	// serve. MaxDelay is the maximum age of the oldest of them that is not parked. So events that
	// were written just now do not keep a generation from serving, but an older backlog or a
	// blocked aggregate does. Defaults: 100 events and 10 seconds.
	MaxLag   uint64
	MaxDelay time.Duration
	// Logger receives the errors of consumers that ended, and of old rows that Drop could not
	// delete. Default: none.
	Logger watermill.LoggerAdapter
}

var (
	validName = regexp.MustCompile(`^[A-Za-z0-9_-]{1,100}$`)
	validForm = regexp.MustCompile(`^[A-Za-z0-9._-]{0,100}$`)
)

// validate returns an error for a config that cannot work. Program says that it is for Open, which
// requires more fields than OpenExisting.
func (c *Config) validate(program bool) error {
	unfit := slices.IndexFunc(c.Forms, func(form string) bool { return !validForm.MatchString(form) })
	switch {
	case !validName.MatchString(c.Name):
		return &ConfigError{"Name", "is not 1 to 100 letters, digits, underscores and hyphens: it is part of the names of tables and groups"}
	case c.Journal == nil:
		return &ConfigError{"Journal", "is nil"}
	case unfit >= 0:
		return &ConfigError{"Forms", fmt.Sprintf("have %q, which is not up to 100 letters, digits, dots, underscores and hyphens", c.Forms[unfit])}
	case program && len(c.Topics) == 0 || slices.Contains(c.Topics, ""):
		return &ConfigError{"Topics", "are empty: name the aggregate types to consume"}
	case len(slices.Compact(slices.Sorted(slices.Values(c.Topics)))) < len(c.Topics):
		return &ConfigError{"Topics", "name a topic twice: name each once"}
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

// Model is a read model with its generations. It is safe for concurrent use, by any number of
// processes.
type Model struct {
	client Client
	config Config
	groups *groups.Groups

	mu     sync.Mutex
	cached state
	readAt time.Time
}

// Open opens a read model, with one or two requests. If it has no generation, Open makes the first
// one, with the last of [Config].Forms, and it serves. While DynamoDB throttles, fails or cannot be
// reached, Open tries again for up to 30 seconds.
//
// Errors: [*ConfigError], [ErrCorrupt], [journal.ErrTableMissing], [journal.ErrAccess],
// [journal.ErrThrottled], [journal.ErrUnavailable], and the error of ctx.
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

// Serving returns the generation that queries read. It returns an earlier result if that is younger
// than [Config].MaxAge, and otherwise reads it, strongly consistent. If the read fails, it returns
// an older result if there is one, because both generations are kept up to date.
//
// With a context of Pin it returns the same generation each time.
//
// Errors: [*FormError] if this program does not know its form, and those of Open.
func (m *Model) Serving(ctx context.Context) (Generation, error) {
	if g, ok := ctx.Value(pin{m}).(Generation); ok {
		return g, nil
	}
	m.mu.Lock()
	known, age := m.cached, time.Since(m.readAt)
	m.mu.Unlock()
	if known.exists() && age <= m.config.MaxAge {
		return m.readable(known)
	}
	if known.exists() { // an older result can be used
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, time.Second)
		defer cancel()
	}
	s, err := m.current(ctx)
	if err != nil && known.exists() {
		m.config.Logger.Info("Cannot read which generation serves, continues with the earlier one", watermill.LogFields{"read_model": m.config.Name, "err": err})
		return m.readable(known)
	}
	if err != nil {
		return Generation{}, err
	}
	return m.readable(s)
}

// pin is the key of a context for the generation that serves.
type pin struct{ model *Model }

// Pin returns a context with which Serving returns the generation that serves now. So a query waits
// for the generation that it reads, also if another one begins to serve meanwhile. Errors: those of
// Serving.
func (m *Model) Pin(ctx context.Context) (context.Context, error) {
	g, err := m.Serving(ctx)
	if err != nil {
		return ctx, err
	}
	return context.WithValue(ctx, pin{m}, g), nil
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

// newest returns the form to begin: the last that this program knows, or the form of the serving
// generation if the program knows any form.
func (m *Model) newest(s state) string {
	if n := len(m.config.Forms); n > 0 {
		return m.config.Forms[n-1]
	}
	return s.forms[s.serving]
}
