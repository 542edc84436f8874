package console

import (
	"fmt"
	"iter"
	"net/http"
	"slices"
	"time"

	"github.com/ThreeDotsLabs/watermill"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/process"
	"github.com/millrace-dev/millrace/projection/readmodel"
	"github.com/millrace-dev/millrace/repository"
	"github.com/millrace-dev/millrace/subscriber/groups"
)

// App is what the console needs of an application. A millrace.App is one.
type App interface {
	Journal() *journal.Journal
	Groups() *groups.Groups
	Backlog() *process.Backlog
	ReadModelTable() string
	// Components yields the repositories and process managers, with their aggregate types, among
	// others.
	Components() iter.Seq2[string, any]
}

// Config configures a console. App or Journal is required.
type Config struct {
	// App supplies what the fields up to Repositories leave out.
	App App

	// Journal is what the console shows. Default: that of App.
	Journal *journal.Journal
	// Groups are the consumer groups. Set it if groups keep positions in a store of their own
	// (groups.WithPositions). Default: those of App, or groups.New(Journal).
	Groups *groups.Groups
	// Backlog is what process managers have left to do. Default: that of App, or that of the table
	// process.DefaultTable.
	Backlog *process.Backlog
	// ReadModelTable is the table of read models. Default: that of App, or readmodel.DefaultTable.
	ReadModelTable string
	// Repositories load states: those of process managers too. For the types of other aggregates the
	// console shows events alone. Default: those of App.
	Repositories []repository.AnyRepository

	// Topics are listed beside those that a repository or a consumer group has.
	Topics []string

	// AllowActions offers actions on groups, read models and process managers. It requires Authorize.
	// Default: the console only reads.
	AllowActions bool
	// Authorize decides whether a request may do what it asks for. It returns who asks, for the audit
	// log. An error refuses, and is shown to the visitor. It is called for each action.
	Authorize func(r *http.Request, a Action) (actor string, err error)

	// HidePayloads leaves out payloads, states, commands and metadata.
	HidePayloads bool
	// Redact returns what is shown of a payload, a state, a command or metadata; nil to hide it.
	// Default: all is shown.
	Redact func(p Payload) []byte

	// Hosts are the names under which the console is reached, such as "ops.example.com"; others are
	// refused. Default: any name. On the loopback interface it answers to localhost, to loopback
	// addresses and to Hosts alone, so that a page of another site cannot reach it by a name of its
	// own.
	Hosts []string
	// Secret signs page tokens. Processes that serve the same console need the same one, of 32 bytes
	// or more. Default: a random one, with which tokens end with the process.
	Secret []byte

	// PageUnits is how many read units a page takes before it leaves out the rest, and says so. What is
	// being read then is still read to its end. Default: 500.
	PageUnits float64
	// Refresh is how often pages refresh themselves, or less often if that takes more than 50 read
	// units a second. What one visitor has read in half that time is shown to others. Default: 10
	// seconds; negative: never.
	Refresh time.Duration

	// Logger receives the audit log of actions, and errors. Default: none.
	Logger watermill.LoggerAdapter
}

// ConfigError reports a setting that cannot work.
type ConfigError struct{ Field, Reason string }

func (e *ConfigError) Error() string {
	return fmt.Sprintf("console: Config.%s %s", e.Field, e.Reason)
}

// Payload is something that came from the application, as it would be shown.
type Payload struct {
	Kind      PayloadKind
	Aggregate aggregate.ID
	Number    uint64 // of the event, or of the last event in the state; 0 for a command
	Type      string // of the event; empty for others
	// Data is JSON where the payload is JSON, the state encoded as JSON, or the metadata as a JSON
	// object of strings.
	Data []byte
}

// PayloadKind says what a [Payload] is.
type PayloadKind string

// The kinds of payloads.
const (
	EventPayload    PayloadKind = "event"
	StatePayload    PayloadKind = "state"
	CommandPayload  PayloadKind = "command"
	MetadataPayload PayloadKind = "metadata"
)

const (
	defaultPageUnits = 500
	defaultRefresh   = 10 * time.Second
	leastSecret      = 32 // bytes
)

func (c *Config) setDefaults() error {
	if c.App != nil {
		if c.Journal == nil {
			c.Journal = c.App.Journal()
		}
		if c.Groups == nil {
			c.Groups = c.App.Groups()
		}
		if c.Backlog == nil {
			c.Backlog = c.App.Backlog()
		}
		if c.ReadModelTable == "" {
			c.ReadModelTable = c.App.ReadModelTable()
		}
	}
	switch {
	case c.Journal == nil:
		return &ConfigError{"Journal", "is nil, and there is no App: set one of them"}
	case c.AllowActions && c.Authorize == nil:
		return &ConfigError{"Authorize", "is nil, and AllowActions is set: say who may do what"}
	case len(c.Secret) > 0 && len(c.Secret) < leastSecret:
		return &ConfigError{"Secret", fmt.Sprintf("has %d bytes: want %d or more, or none", len(c.Secret), leastSecret)}
	case c.PageUnits < 0:
		return &ConfigError{"PageUnits", fmt.Sprintf("is %v: want more than 0, or 0 for the default", c.PageUnits)}
	}
	c.Hosts = slices.DeleteFunc(slices.Clone(c.Hosts), func(name string) bool { return name == "" })
	if c.Groups == nil {
		c.Groups = groups.New(c.Journal)
	}
	if c.Backlog == nil {
		c.Backlog = process.NewBacklog(c.Journal.Client(), process.DefaultTable)
	}
	if c.ReadModelTable == "" {
		c.ReadModelTable = readmodel.DefaultTable
	}
	if c.PageUnits == 0 {
		c.PageUnits = defaultPageUnits
	}
	if c.Refresh == 0 {
		c.Refresh = defaultRefresh
	}
	if c.Logger == nil {
		c.Logger = watermill.NopLogger{}
	}
	return nil
}
