package journal

import (
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/millrace-dev/millrace/internal/rows"
)

// engine is what a journal does in every layout: it validates arguments, encodes and decodes
// payloads, and notifies watchers. Its layout stores and reads.
type engine struct {
	*store
	config   settings
	given    Client // as the caller passed it
	kinds    []kind
	layout   layout
	watchers *watchers
	raw      bool // see Raw
}

// newEngine returns an engine with one of the layouts.
func newEngine(client Client, config settings, kinds []kind) *engine {
	_, sdk := client.(*dynamodb.Client)
	j := &engine{config: config, given: client, kinds: kinds, watchers: &watchers{}}
	client = bounded{client}
	if j.config.Now == nil {
		clock := &clock{}
		j.config.Now, client = clock.now, timed{client, clock}
	}
	j.store = &store{client, &j.config.tableSettings, rows.Source{Client: client, SDK: sdk}}
	j.use(config.Layout)
	return j
}

// Raw returns the same engine with payloads as they are stored. Its Append stores payloads and
// Encoding unchanged, for callers that copy a journal. An encoding may bind a payload to its
// journal.Place. Such a payload can only be copied to the same aggregate and number. Its commits
// wake the watchers of the original.
func (j *engine) Raw() *engine {
	raw := *j
	raw.raw = true
	return &raw
}
