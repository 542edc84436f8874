package console

import (
	"fmt"
	"iter"
	"net/http"
	"slices"
	"time"

	"github.com/ThreeDotsLabs/watermill"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/catalogue"
	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/process"
	"github.com/millrace-dev/millrace/projection/readmodel"
	"github.com/millrace-dev/millrace/repository"
	"github.com/millrace-dev/millrace/subscriber/groups"
)

// App is the part of an application that the console uses. *millrace.App implements it.
type App interface {
	Journal() *journal.Journal
	Groups() *groups.Groups
	Backlog() *process.Backlog
	ReadModelTable() string
	// Components yields the repositories and the process managers by their aggregate types, and
	// may yield other components.
	Components() iter.Seq2[string, any]
}

// Config configures a console. App or Journal is required.
type Config struct {
	// App supplies the defaults of Journal, Groups, Backlog, ReadModelTable and Repositories.
	App App

	// Journal is the journal that the console shows. Default: the journal of App.
	Journal *journal.Journal
	// Groups reads and changes consumer groups. Set it if groups have external positions
	// (groups.WithPositions). Default: the groups of App, or groups.New(Journal).
	Groups *groups.Groups
	// Backlog reads and changes timeouts and unsent commands of process managers. Default: the
	// backlog of App, or of the table process.DefaultTable.
	Backlog *process.Backlog
	// ReadModelTable is the name of the table of read models. Default: the table of App, or
	// readmodel.DefaultTable.
	ReadModelTable string
	// Repositories load the states of aggregates. A process manager also implements AnyRepository,
	// for its processes. These repositories are added to the repositories of App, and replace those
	// of the same type. For aggregates of other types the console shows events and the latest
	// snapshot.
	Repositories []repository.AnyRepository

	// Topics are topics to list in addition to those with a repository or a consumer group.
	Topics []string

	// Catalogue has the schemas of events. The type of an event links to its schema. Default: no
	// links.
	Catalogue *catalogue.Catalogue

	// AllowActions allows actions on groups, read models and process managers, see [Action]. It
	// requires Authorize and Logger. Default: the console only reads.
	AllowActions bool
	// Authorize decides whether the sender of a request may execute an action. It returns the name
	// of the sender for the audit log. An error refuses the action, and is shown to the visitor. It
	// is called once for each action.
	Authorize func(r *http.Request, a Action) (actor string, err error)

	// HidePayloads leaves out payloads, states, commands and metadata.
	HidePayloads bool
	// Redact returns the data to show in place of a payload, a state, a command or metadata. It
	// hides the data if it returns nil. Default: everything is shown.
	Redact func(p Payload) []byte

	// Hosts are the host names of the console, such as "ops.example.com". Requests for other names
	// are refused. Default: all names are accepted. On the loopback interface only localhost,
	// loopback addresses and Hosts are accepted, also by default. Otherwise another site could make
	// its own name resolve to the loopback address, and read the console (DNS rebinding).
	Hosts []string
	// Secret signs the tokens of forms and of links to next pages. Minimum: 32 bytes. Processes
	// that serve the same console need the same Secret. Default: a random secret for each process,
	// so tokens become invalid when the process restarts.
	Secret []byte

	// PageUnits is the limit of read units of a page. A page that has reached it leaves out the
	// rest, and lists what it has left out. A request that has started is completed. It reads up to
	// 1 MB, which costs 256 units, so a page can exceed the limit by a few times 256 units. The
	// page of one group reads all of its shards. "Find all topics" has a limit of its own, of the
	// same size. Default: 500.
	PageUnits float64
	// Refresh is the interval at which pages refresh themselves. Pages that would take more than 50
	// read units per second are refreshed less often. Pages that were read for one visitor are
	// shown to others for half of the interval. Default: 10 seconds. A negative value disables
	// both.
	Refresh time.Duration

	// Logger receives the audit log of actions, and the errors of pages. It is required with
	// AllowActions. Default: no log.
	Logger watermill.LoggerAdapter
}

// ConfigError reports a setting that cannot work. Field names the setting, and Reason says why.
type ConfigError struct{ Field, Reason string }

func (e *ConfigError) Error() string {
	return fmt.Sprintf("console: Config.%s %s", e.Field, e.Reason)
}

// Payload is data of the application that the console will show. It is the argument of
// Config.Redact.
type Payload struct {
	Kind      PayloadKind  // what the value is
	Aggregate aggregate.ID // the aggregate of the event or state
	Number    uint64       // of the event, or of the last event in the state; 0 for a command
	Type      string       // type of the event; empty for states and commands
	// Data is the decoded payload of the event or command, the state encoded as JSON, or the
	// metadata as a JSON object of strings. Redact must return the same format.
	Data []byte
}

// PayloadKind is the kind of a [Payload].
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
		return &ConfigError{"Authorize", "is nil, and AllowActions is set: set a function that decides who may do what"}
	case c.AllowActions && c.Logger == nil:
		return &ConfigError{"Logger", "is nil, and AllowActions is set: set the audit log of the actions"}
	case len(c.Secret) > 0 && len(c.Secret) < leastSecret:
		return &ConfigError{"Secret", fmt.Sprintf("has %d bytes: use %d or more, or none", len(c.Secret), leastSecret)}
	case c.PageUnits < 0:
		return &ConfigError{"PageUnits", fmt.Sprintf("is %v: use a positive number, or 0 for the default", c.PageUnits)}
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
