package journal

import (
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/millrace-dev/millrace/internal/rows"
)

// Engine is what a journal does in every layout: it validates arguments, encodes and decodes
// payloads, and notifies watchers. Its layout stores and reads.
type Engine struct {
	*Store
	Config   EngineSettings
	Given    Client // as the caller passed it
	kinds    []Kind
	Layout   Storage
	watchers *watchers
	raw      bool // see Raw
}

// NewEngine returns an engine with one of the layouts.
func NewEngine(client Client, config EngineSettings, kinds []Kind) *Engine {
	_, sdk := client.(*dynamodb.Client)
	j := &Engine{Config: config, Given: client, kinds: kinds, watchers: &watchers{}}
	client = Bounded{client}
	if j.Config.Now == nil {
		clock := &Clock{}
		j.Config.Now, client = clock.Now, Timed{client, clock}
	}
	j.Store = &Store{client, &j.Config.TableSettings, rows.Source{Client: client, SDK: sdk}}
	j.use(config.Layout)
	return j
}

// Raw returns the same engine with payloads as they are stored. Its Append stores payloads and
// Encoding unchanged, for callers that copy a journal. An encoding may bind a payload to its
// journal.Place. Such a payload can only be copied to the same aggregate and number. Its commits
// wake the watchers of the original.
func (j *Engine) Raw() *Engine {
	raw := *j
	raw.raw = true
	return &raw
}
