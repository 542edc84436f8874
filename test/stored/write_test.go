package stored

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/dynamotest"
	"github.com/millrace-dev/millrace/internal/testjournal"
	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/journal/archive"
	"github.com/millrace-dev/millrace/process"
	"github.com/millrace-dev/millrace/projection/readmodel"
	"github.com/millrace-dev/millrace/publisher"
	"github.com/millrace-dev/millrace/repository"
)

// patience limits the time that a test waits before it fails.
const patience = 2 * time.Minute

// The ids of aggregates. The other accounts have the names of the groups that fail.
const (
	long      = "long"
	truncated = "truncated"
	deleted   = "deleted"
	odd       = "odd id/é-1"
	short     = "short"
	payer     = "payer"
	payee     = "payee"
	destroyed = "destroyed"
	ada       = "ada"

	transfer = "transfer-1" // the id of a command over two accounts
	box      = "box-1"      // a stream that messages name
)

// writer writes a fixture.
type writer struct {
	*bank
	*expected
	t *testing.T
}

// writeFixture writes the fixture of a version and a layout to a folder.
func writeFixture(t *testing.T, folder, version string, layout journal.Layout) {
	t.Helper()
	db := dynamotest.New(t)
	db.Clock().Set(time.Date(2026, 1, 5, 9, 0, 0, 0, time.UTC))
	s := settings{layout: layout, tables: true, faults: true, ids: &idCounter{salt: "written"}}
	w := &writer{open(t, db, s), &expected{Version: version, Layout: layout, Handled: map[string]map[string]uint64{}}, t}
	w.writeFailing()
	if layout == journal.Packed {
		w.growTail()
		w.bank = open(t, db, s) // knows the new partitions
	}
	w.writeAccounts()
	w.writeCustomers()
	w.publish(1)
	w.consume()
	w.writeLater()
	w.readBack()

	w.Written = db.Clock().Now().UTC()
	dumpTables(t, w.client, folder)
	var out bytes.Buffer
	_, err := archive.Export(t.Context(), w.Journal(), &out, archive.ExportOptions{Concurrency: 1})
	require.NoError(t, err)
	write(t, filepath.Join(folder, archiveFile), out.Bytes())
	saveExpected(t, filepath.Join(folder, expectedFile), w.expected)
}

// growTail doubles the number of the tail's partitions, and waits until writers use them.
func (w *writer) growTail() {
	since, err := w.Journal().GrowTail(w.t.Context(), 2*w.Journal().Shards())
	require.NoError(w.t, err)
	w.clock.Set(since.Add(time.Minute))
}

// execute executes a command for each event, and records it.
func execute[S any](w *writer, r *repository.Repository[S], id string, events ...aggregate.Event[S]) {
	h := w.of(aggregate.ID{Type: r.Type(), Value: id})
	for _, event := range events {
		w.clock.Advance(time.Second)
		command := fmt.Sprintf("%s-%d", id, h.Version+1)
		ctx := aggregate.ContextWithMetadata(w.t.Context(), aggregate.Metadata{aggregate.CorrelationIDKey: "visit of " + id})
		_, err := r.Execute(ctx, id, func(S) (aggregate.Events[S], error) {
			return aggregate.Events[S]{event}, nil
		}, repository.WithCommandID(command))
		require.NoError(w.t, err, "%s %s", r.Type(), id)
		add(w.t, h, w.clock.Now().UTC(), event)
		h.Commands = append(h.Commands, command)
	}
}

// deposits returns an event that opens an account, and n deposits.
func deposits(n int) []aggregate.Event[Account] {
	events := []aggregate.Event[Account]{Opened{"Ada"}}
	for i := range n {
		events = append(events, Deposited{10 + i})
	}
	return events
}

// writeFailing writes the accounts with events that groups cannot handle. They come first, since an
// aggregate that blocks is listed when later events of its shard were handled.
func (w *writer) writeFailing() {
	for _, group := range slices.Sorted(maps.Keys(failing)) {
		execute(w, w.accounts, group, deposits(2)...)
	}
	execute(w, w.accounts, waiting, deposits(1)...)
	execute(w, w.accounts, unsent, deposits(1)...)
}

func (w *writer) writeAccounts() {
	execute(w, w.accounts, long, deposits(26)...)
	execute(w, w.accounts, truncated, deposits(11)...)
	execute(w, w.accounts, deleted, deposits(2)...)
	execute(w, w.accounts, odd, Opened{"Zoë"}, Noted{strings.Repeat("This text is so long that it is compressed. ", 50)}, Deposited{7})
	execute(w, w.accounts, odd, Noted{incompressible(3000)})
	if w.Layout == journal.Packed {
		// Too short for the encoding, but not for the layout. The fifth event stores a snapshot.
		execute(w, w.accounts, short, append(deposits(3), Noted{strings.Repeat("The layout compresses this text. ", 25)})...)
	}
	execute(w, w.accounts, payer, deposits(3)...)
	w.pay()
	w.saveSeveral()
	w.doNothing(payee) // no snapshot follows
}

// incompressible returns a text of n characters that stays large when it is compressed.
func incompressible(n int) string {
	var text strings.Builder
	for i := 0; text.Len() < n; i++ {
		fmt.Fprintf(&text, "%x", sha256.Sum256([]byte{byte(i)}))
	}
	return text.String()[:n]
}

// doNothing executes a command that leads to no event.
func (w *writer) doNothing(id string) {
	command := "nothing for " + id
	a := testjournal.Execute(w.t, w.accounts, id, func(Account) (aggregate.Events[Account], error) {
		return nil, nil
	}, repository.WithCommandID(command))
	h := w.of(a.ID)
	h.Commands = append(h.Commands, command)
}

// pay commits events of two accounts in one transaction.
func (w *writer) pay() {
	var tx repository.Transaction
	from, to := w.accounts.AddTo(&tx, payer), w.accounts.AddTo(&tx, payee)
	w.clock.Advance(time.Second)
	require.NoError(w.t, tx.Execute(w.t.Context(), func() error {
		from.Append(Deposited{-20})
		to.Append(Opened{"Ben"}, Deposited{20})
		return nil
	}, repository.WithCommandID(transfer)))
	add[Account](w.t, w.of(aggregate.ID{Type: accounts.Type(), Value: payer}), w.clock.Now().UTC(), Deposited{-20})
	h := w.of(aggregate.ID{Type: accounts.Type(), Value: payee})
	add[Account](w.t, h, w.clock.Now().UTC(), Opened{"Ben"}, Deposited{20})
}

// saveSeveral stores several events in one commit without a command id.
func (w *writer) saveSeveral() {
	w.clock.Advance(time.Second)
	a, err := w.accounts.Load(w.t.Context(), payee)
	require.NoError(w.t, err)
	events := aggregate.Events[Account]{Deposited{1}, Noted{"thanks"}, Deposited{2}}
	_, err = w.accounts.Save(w.t.Context(), a, events)
	require.NoError(w.t, err)
	add(w.t, w.of(a.ID), w.clock.Now().UTC(), events...)
}

func (w *writer) writeCustomers() {
	execute(w, w.customers, ada, Registered{"Ada"}, Moved{"1 Mill Lane"}, Moved{"2 Mill Lane"})
	execute(w, w.customers, destroyed, Registered{"Ben"})
}

// publish publishes messages to the stream of the publisher and to a stream that they name.
func (w *writer) publish(from int) {
	for i := range 3 {
		msg := message.NewMessage(fmt.Sprintf("b1f5d1a4-0000-4000-8000-%012d", from+i), []byte(fmt.Sprintf(`{"letter":%d}`, from+i)))
		msg.Metadata = message.Metadata{publisher.NameKey: "letter", "colour": "blue"}
		id := aggregate.ID{Type: letters, Value: stream}
		if i == 1 {
			id.Value = box
			msg.Metadata.Set(publisher.AggregateIDKey, box)
		}
		w.clock.Advance(time.Second)
		require.NoError(w.t, w.letters.Publish(letters, msg))
		w.of(id).Version++
	}
}

// consume runs the application until its groups have handled everything that they can, and records
// what they have handled.
func (w *writer) consume() {
	second, err := w.totals.Begin(w.t.Context())
	require.NoError(w.t, err)
	// The group that begins now does not handle events before its start.
	w.clock.Advance(time.Minute)
	stop := w.start(w.t)
	for _, group := range recording() {
		if group == stopping {
			continue // the group has handled an unknown part of the other accounts
		}
		for _, topic := range topicsOf(group) {
			w.waitApplied(group, topic, group)
		}
	}
	for _, group := range []string{balances, firstTotals().Group(), second.Group()} {
		w.waitApplied(group, accounts.Type(), "")
	}
	w.waitApplied(reminders.Type(), accounts.Type(), unsent)
	w.waitForFailures()
	require.NoError(w.t, w.totals.Switch(w.t.Context(), second))
	stop()
	require.Len(w.t, behind(w.t, w.bank, blocking), 1, "a member lists blocked aggregates when it stops")
	for _, group := range recording() {
		w.Handled[group] = map[string]uint64{}
		for id, numbers := range w.handled.of(group) {
			w.Handled[group][id] = numbers[len(numbers)-1]
		}
	}
	require.Empty(w.t, w.Handled[recent])
	for _, h := range w.readable(accounts.Type()) {
		w.Handled[recent][h.ID.String()] = h.Version
	}
	w.useDedup()
}

// waitApplied waits until a group has handled all events of a topic, except those of one aggregate
// if a handler fails for it.
func (w *writer) waitApplied(group, topic, except string) {
	passes := group == skipping || group == deferring // a failed event counts as applied
	for _, h := range w.readable(topic) {
		if h.ID.Value != except || passes {
			waitApplied(w.t, w.bank, group, h.ID, h.Version)
		}
	}
}

func waitApplied(t *testing.T, b *bank, group string, id aggregate.ID, number uint64) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	require.NoError(t, b.Groups().WaitApplied(ctx, group, id, number), group)
}

// waitForFailures waits until all failures except the blocked one are in the tables.
func (w *writer) waitForFailures() {
	require.Eventually(w.t, func() bool {
		g, err := w.Groups().Of(stopping, accounts.Type()).Status(w.t.Context())
		return err == nil && g.Stopped != nil &&
			len(behind(w.t, w.bank, parking)) == 1 &&
			len(skippedBy(w.t, w.bank, skipping)) == 1 && len(skippedBy(w.t, w.bank, deferring)) == 1 &&
			w.unsentCommand() != ""
	}, patience, 20*time.Millisecond)
	w.Unsent = w.unsentCommand()
}

// unsentCommand returns the UUID of the command that is stored and cannot be sent.
func (w *writer) unsentCommand() string {
	for p, err := range w.Backlog().Pending(w.t.Context(), process.BacklogQuery{Type: reminders.Type(), ID: unsent}) {
		require.NoError(w.t, err)
		if len(p.Commands) > 0 {
			return p.Commands[0].Message.UUID
		}
	}
	return ""
}

// useDedup stores the position of a handler behind another Pub/Sub, and the key of a message.
func (w *writer) useDedup() {
	for number := range uint64(2) {
		require.True(w.t, handledOnce(w.t, w.bank, number+1))
	}
	duplicate, err := w.keys.IsDuplicate(w.t.Context(), "message 1")
	require.NoError(w.t, err)
	require.False(w.t, duplicate)
}

// writeLater writes what the groups have not handled, and removes what they have handled.
func (w *writer) writeLater() {
	for _, h := range w.readable(accounts.Type()) {
		if h.ID.Value != deleted {
			execute(w, w.accounts, h.ID.Value, Deposited{1000})
		}
	}
	execute(w, w.accounts, "later", deposits(2)...)
	execute(w, w.customers, ada, Moved{"3 Mill Lane"})
	w.publish(4)
	ctx := w.t.Context()
	h := w.of(aggregate.ID{Type: accounts.Type(), Value: truncated})
	h.From = 8
	require.NoError(w.t, w.accounts.Truncate(ctx, truncated, h.From, journal.RemoveOptions{}))
	h = w.of(aggregate.ID{Type: accounts.Type(), Value: deleted})
	require.NoError(w.t, w.accounts.Delete(ctx, deleted, h.Version, journal.RemoveOptions{}))
	h.Deleted = true
	h = w.of(aggregate.ID{Type: customers.Type(), Value: destroyed})
	require.NoError(w.t, w.secret.Destroy(ctx, h.ID))
	h.KeyDestroyed = true
}

// readBack finds out which states of the truncated account can still be loaded.
func (w *writer) readBack() {
	h := w.of(aggregate.ID{Type: accounts.Type(), Value: truncated})
	for number := range h.Version {
		var lost *journal.TruncatedError
		if _, err := w.accounts.LoadAtVersion(w.t.Context(), truncated, number+1); errors.As(err, &lost) {
			h.Lost = append(h.Lost, number+1)
		} else {
			require.NoError(w.t, err)
		}
	}
	require.NotEmpty(w.t, h.Lost)
}

// firstTotals and secondTotals are the generations of the read model. The second one serves.
func firstTotals() readmodel.Generation  { return readmodel.Generation{Model: totals, Number: 1} }
func secondTotals() readmodel.Generation { return readmodel.Generation{Model: totals, Number: 2} }
