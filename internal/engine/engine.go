package engine

import (
	"context"

	"github.com/millrace-dev/millrace/internal/table"
	"github.com/millrace-dev/millrace/journal/journaltype"
)

// Engine is what a journal does in every layout: it validates arguments, encodes and decodes
// payloads, and notifies watchers. Its layout stores and reads.
type Engine struct {
	*table.Table
	Traits   // of the layout
	Config   Settings
	Given    journaltype.Client // as the caller passed it
	kinds    []Kind
	Layout   Layout
	watchers *watchers
	hints    *hints
	raw      bool // see Raw
}

// New returns an engine with one of the layouts.
func New(client journaltype.Client, config Settings, kinds []Kind) *Engine {
	j := &Engine{Config: config, Given: client, kinds: kinds, watchers: &watchers{}, hints: &hints{}}
	j.Table = table.New(client, &j.Config.Settings)
	j.use(config.Layout)
	return j
}

// Bounded returns the journal's client, with reads that end after dynamo.ReplyLimit.
func (j *Engine) Bounded() journaltype.Client { return table.Bounded(j.Given) }

// Raw returns the same engine with payloads as they are stored. Its Append stores payloads and
// Encoding unchanged, for callers that copy a journal. An encoding may bind a payload to its
// journal.Place. Such a payload can only be copied to the same aggregate and number. Its commits
// wake the watchers of the original.
func (j *Engine) Raw() *Engine {
	raw := *j
	raw.raw = true
	return &raw
}

// ConfirmClock makes requests until the latest reply does not contradict the known difference of
// the clocks, so that Settings.Now is right if somebody has set this machine's clock. It makes no
// request if the latest reply agrees, and six at most.
func (j *Engine) ConfirmClock(ctx context.Context) error {
	return j.Table.ConfirmClock(ctx, func(ctx context.Context) error {
		_, err := j.ReadDescriptor(ctx)
		return err
	})
}
