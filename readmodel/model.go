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

	"github.com/millrace-dev/millrace/groups"
	"github.com/millrace-dev/millrace/journal"
)

// Client is what a [Model] needs of a *dynamodb.Client.
type Client interface {
	GetItem(context.Context, *dynamodb.GetItemInput, ...func(*dynamodb.Options)) (*dynamodb.GetItemOutput, error)
	UpdateItem(context.Context, *dynamodb.UpdateItemInput, ...func(*dynamodb.Options)) (*dynamodb.UpdateItemOutput, error)
}

// Config configures a [Model]. Name, Journal and Topics are required.
type Config struct {
	// Name is that of the read model, the same in all programs: letters, digits, underscore and hyphen, at most 100.
	Name string
	// Journal is where the events come from.
	Journal *journal.Journal
	// Topics are what the read model consumes. Progress looks at all of them. [OpenExisting] can do without.
	Topics []string
	// Table keeps which generations there are. [CreateTable] makes it; read models can share one. Default: "readmodel".
	Table string
	// MaxAge is for how long [Model.Serving] takes what it read before for true. Default: 1 second; negative to read each time.
	MaxAge time.Duration
	// Refresh is how often [Model.Run] looks for generations that have come or gone. Default: 1 second.
	Refresh time.Duration
	// MaxLag is by how many events a generation may be behind when it begins to serve. Default: 100.
	MaxLag uint64
	// Logger is told of consumers that ended with an error. Default: none.
	Logger watermill.LoggerAdapter
}

var validName = regexp.MustCompile(`^[A-Za-z0-9_-]{1,100}$`)

func (c *Config) validate(topics bool) error {
	switch {
	case !validName.MatchString(c.Name):
		return &ConfigError{"Name", "is not 1 to 100 letters, digits, underscores and hyphens: it is a part of names of tables and groups"}
	case c.Journal == nil:
		return &ConfigError{"Journal", "is nil"}
	case topics && len(c.Topics) == 0 || slices.Contains(c.Topics, ""):
		return &ConfigError{"Topics", "are empty: name the aggregate types that are consumed"}
	case c.Refresh < 0:
		return &ConfigError{"Refresh", "is negative"}
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
	if c.Logger == nil {
		c.Logger = watermill.NopLogger{}
	}
	return nil
}

// Generation is one building of a read model. The zero value is none.
type Generation struct {
	Model  string
	Number uint64 // from 1
}

// Group is its consumer group.
func (g Generation) Group() string { return fmt.Sprintf("%s.%d", g.Model, g.Number) }

// Table is its table of a name: "orders" becomes "orders.2".
func (g Generation) Table(name string) string { return fmt.Sprintf("%s.%d", name, g.Number) }

func (g Generation) String() string { return g.Group() }

// Model is a read model in generations. It is safe for concurrent use, by any number of processes.
type Model struct {
	client Client
	config Config
	groups *groups.Groups

	mu     sync.Mutex
	cached state
	readAt time.Time
}

// Open gives a read model, and makes its first generation if it has none, which serves: a request or two.
//
// Errors: [ErrInvalidConfig], [ErrCorrupt], [journal.ErrTableMissing], [journal.ErrAccess], those of the SDK.
func Open(ctx context.Context, client Client, config Config) (*Model, error) {
	m, err := newModel(client, config, true)
	if err != nil {
		return nil, err
	}
	_, err = m.change(ctx, "open", true, func(s state) (state, error) {
		if s.exists() {
			return s, errUnchanged
		}
		return state{serving: 1, live: []uint64{1}, last: 1}, nil
	})
	if err != nil {
		return nil, err
	}
	return m, nil
}

func newModel(client Client, config Config, topics bool) (*Model, error) {
	if client == nil {
		return nil, &ConfigError{"client", "is nil: pass a *dynamodb.Client"}
	}
	if err := config.validate(topics); err != nil {
		return nil, err
	}
	return &Model{client: client, config: config, groups: groups.New(config.Journal)}, nil
}

// Serving gives the generation that queries read: as it was read within [Config].MaxAge, or else now, strongly consistent. Where that fails and there is an
// older reading, it gives that, for both generations are kept up to date.
//
// Errors: those of Open.
func (m *Model) Serving(ctx context.Context) (Generation, error) {
	m.mu.Lock()
	known, age := m.cached, time.Since(m.readAt)
	m.mu.Unlock()
	if known.exists() && age <= m.config.MaxAge {
		return m.generation(known.serving), nil
	}
	if known.exists() { // and can be gone on with
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, time.Second)
		defer cancel()
	}
	s, err := m.current(ctx)
	if err != nil && known.exists() {
		m.config.Logger.Info("Cannot read which generation serves, goes on with the one that did", watermill.LogFields{"read_model": m.config.Name, "err": err})
		return m.generation(known.serving), nil
	}
	return m.generation(s.serving), err
}

// Generations gives those that are kept up to date, oldest first, and which of them serves and served before.
func (m *Model) Generations(ctx context.Context) (Generations, error) {
	s, err := m.current(ctx)
	if err != nil {
		return Generations{}, err
	}
	return s.generations(m.config.Name), nil
}

// Generations are those of a read model.
type Generations struct {
	Live     []Generation
	Serving  Generation
	Previous Generation // none if it was dropped, or if there was none
}

func (s state) generations(model string) Generations {
	g := Generations{Serving: generation(model, s.serving), Previous: generation(model, s.previous)}
	for _, n := range s.live {
		g.Live = append(g.Live, generation(model, n))
	}
	return g
}

func (m *Model) generation(number uint64) Generation { return generation(m.config.Name, number) }

func generation(model string, number uint64) Generation {
	if number == 0 {
		return Generation{}
	}
	return Generation{Model: model, Number: number}
}
