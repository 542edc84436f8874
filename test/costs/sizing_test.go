package costs

import (
	"fmt"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/internal/testjournal"
	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/repository"
)

const (
	sizingPage  = "../../docs/operations/sizing.md"
	readmePage  = "../../README.md"
	processPage = "../../docs/guides/process.md"
)

// Prices of us-east-1 since November 2024, in dollars. The page states them.
const (
	writePrice    = 0.625 / 1e6 // of a write request unit
	readPrice     = 0.125 / 1e6
	writeCapacity = 0.00065 // of a unit of write capacity, an hour
	readCapacity  = 0.00013
	storagePrice  = 0.25 // of a GB, a month
	hours         = 730
	seconds       = hours * 3600
	utilization   = 0.7 // of provisioned capacity
)

// All examples have these values: events of 1 KB, one for each commit, 100 events for each
// aggregate, and states that reach 10 KB with the tenth event.
const (
	eventsPerAggregate = 100
	fullState          = 10_000
	fullStateAt        = 10
	consumers          = 2     // groups: a projection, and one with a handler
	heartbeats         = 0.4   // write units a second, for each member and group
	overhead           = 100.0 // bytes of each item and index entry that DynamoDB bills
	rareAccess         = 1.25  // the price of requests in Standard-IA, divided by that in Standard
	rareStorage        = 0.10  // of a GB in Standard-IA, a month
)

// example is a load, and the deployment that serves it.
type example struct {
	events          float64 // a second
	shards, members int
}

var examples = []example{{10, 16, 2}, {100, 16, 2}, {500, 16, 4}, {5_000, 32, 16}}

// figures holds what an event costs: by measurement of commands, and from the page of costs,
// docs/reference/cost.md.
type figures struct {
	commit, snapshot, load, projection, claim, position float64

	bytes, journal    float64 // of an event in all tables, with states, and in the journal alone
	truncate, removed float64 // write units and bytes of an event that a truncation removes
}

func TestThePageOfSizingComputesWithTheFiguresOfThePageOfCosts(t *testing.T) {
	t.Parallel()
	packed, json, classic := measured(t, plain(t)), measured(t, compressing(t)), measured(t, newWorld(t, journal.Classic))
	e := examples[2]
	compareTables(t, sizingPage, map[string]string{
		"sizing-units": units(packed, json), "sizing-examples": packed.examples(), "sizing-parts": parts(packed, json, e),
		"sizing-process": processUnits(t), "sizing-layouts": compared(packed, json, classic, e), "sizing-storage": twelfthMonth(packed, json, e),
	})
	compareTables(t, readmePage, map[string]string{"sizing-readme": packed.savings()})
	for _, goal := range []struct {
		figures
		most float64
	}{{packed, 5_300}, {json, 4_100}, {classic, 16_000}} {
		assert.LessOrEqual(t, onDemand(sum(goal.of(e))), goal.most)
	}
}

// compareTables compares the tables of a page with the computed ones, or writes them with -update.
func compareTables(t *testing.T, page string, tables map[string]string) {
	t.Helper()
	stored, err := os.ReadFile(page)
	require.NoError(t, err)
	text := string(stored)
	for name, table := range tables {
		begin, end := "<!-- "+name+" -->\n", "<!-- /"+name+" -->"
		before, rest, found := strings.Cut(text, begin)
		require.True(t, found, "the page has %q", begin)
		_, after, found := strings.Cut(rest, end)
		require.True(t, found, "the page has %q", end)
		text = before + begin + table + end + after
	}
	if *update {
		require.NoError(t, os.WriteFile(page, []byte(text), 0o644))
		return
	}
	assert.Equal(t, text, string(stored), "costs or prices have changed: run go test ./test/costs -update")
}

func TestThePageOfSizingStatesThePrices(t *testing.T) {
	t.Parallel()
	stored, err := os.ReadFile(sizingPage)
	require.NoError(t, err)
	for _, price := range []string{
		fmt.Sprintf("$%.3f for a million write request units", writePrice*1e6),
		fmt.Sprintf("$%.3f for a million read request units", readPrice*1e6),
		fmt.Sprintf("$%.2f for a GB", storagePrice),
		fmt.Sprintf("$%.5f for an hour of a write capacity unit", writeCapacity),
		fmt.Sprintf("$%.5f for an hour of a read capacity unit", readCapacity),
	} {
		assert.Contains(t, string(stored), price)
	}
}

func TestThePageOfSizingComparesOnDemandWithProvisioned(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile(sizingPage)
	require.NoError(t, err)
	write, read := sum(measured(t, plain(t)).of(examples[2]))
	all := hours * (write*writeCapacity + read*readCapacity)
	text := strings.Join(strings.Fields(string(page)), " ")
	for _, sentence := range []string{
		fmt.Sprintf("provisioned capacity costs %s a month if all of it is used, and %s if 20 %% of it is used. On-demand costs %s.",
			dollars(all), dollars(all/0.2), dollars(onDemand(write, read))),
		fmt.Sprintf("The two cost the same when about %.0f %% of the provisioned capacity is used.", 100*all/onDemand(write, read)),
	} {
		assert.Contains(t, text, sentence, "the page has: %s", sentence)
	}
}

// measured returns what commands cost that are executed on new aggregates without a cache, with the
// default for snapshots, and what consumers cost.
func measured(t *testing.T, w world) (f figures) {
	t.Helper()
	const aggregates = 5
	r := w.repository(repository.Config{})
	calls, before, journalBefore := w.db.Record(), w.bytes("journal", "snapshot"), w.bytes("journal")
	for a := range aggregates {
		for n := range eventsPerAggregate {
			state := min(fullState, fullState/fullStateAt*(n+1))
			testjournal.Execute(t, r, fmt.Sprint("sized ", a), always(writtenAs(a*eventsPerAggregate+n, 1_000, state)))
		}
	}
	const events = aggregates * eventsPerAggregate
	read, write := calls.Units()
	_, f.snapshot = calls.Units("UpdateItem") // in the packed layout
	f.load, f.commit, f.snapshot = read/events, (write-f.snapshot)/events, f.snapshot/events
	f.bytes, f.journal = tens((w.bytes("journal", "snapshot")-before)/events), tens((w.bytes("journal")-journalBefore)/events)
	f.truncate, f.removed = w.truncated(r, "sized 0")
	f.projection = cost(t, "handling", "write units", "a row for each aggregate, an event")
	f.claim = cost(t, "handling", "write units", "the same, before the first event in a term of the shard after the first term")
	f.position = 1
	return f
}

// truncated removes the events of an aggregate that its snapshot includes. It returns the write
// units and the bytes of an event.
func (w world) truncated(r *repository.Repository[Document], id string) (units, removed float64) {
	w.t.Helper()
	head, err := w.j.Head(w.t.Context(), aggregate.ID{Type: document.Type, Value: id})
	require.NoError(w.t, err)
	require.NotNil(w.t, head.Snapshot)
	before, calls := w.bytes("journal", "snapshot"), w.db.Record()
	events := float64(head.Snapshot.Number)
	require.NoError(w.t, r.Truncate(w.t.Context(), id, head.Snapshot.Number+1, journal.RemoveOptions{}))
	_, units = calls.Units()
	return units / events, tens((before - w.bytes("journal", "snapshot")) / events)
}

// tens rounds to the nearest 10. The exact numbers depend on random ids and on the dates of the
// run.
func tens(v float64) float64 { return 10 * math.Round(v/10) }

// bytes returns the bytes of tables and their indexes that DynamoDB bills.
func (w world) bytes(tables ...string) (all float64) {
	w.t.Helper()
	for _, name := range tables {
		out, err := w.db.Client().DescribeTable(w.t.Context(), &dynamodb.DescribeTableInput{TableName: &name})
		require.NoError(w.t, err)
		all += float64(*out.Table.TableSizeBytes) + overhead*float64(*out.Table.ItemCount)
		for _, index := range out.Table.GlobalSecondaryIndexes {
			all += float64(*index.IndexSizeBytes) + overhead*float64(*index.ItemCount)
		}
	}
	return all
}

// cost returns a figure of the page of costs: from a table, a column, and the row that begins with
// cells.
func cost(t *testing.T, table, column string, cells ...string) float64 {
	t.Helper()
	return figure(t, page, table, column, cells...)
}

// figure returns a figure of a page.
func figure(t *testing.T, page, table, column string, cells ...string) float64 {
	t.Helper()
	content, err := os.ReadFile(page)
	require.NoError(t, err)
	_, rest, found := strings.Cut(string(content), "<!-- "+table+" -->\n")
	require.True(t, found, table)
	rest, _, _ = strings.Cut(rest, "<!-- /"+table+" -->")
	lines := strings.Split(strings.TrimSpace(rest), "\n")
	split := func(line string) []string {
		row := strings.Split(strings.Trim(line, "|"), "|")
		for i := range row {
			row[i] = strings.Trim(row[i], " *")
		}
		return row
	}
	at := slices.Index(split(lines[0]), column)
	require.GreaterOrEqual(t, at, 0, "%s has a column %q", table, column)
	for _, line := range lines[2:] {
		if row := split(line); slices.Equal(row[:len(cells)], cells) {
			value, err := strconv.ParseFloat(row[at], 64)
			require.NoError(t, err)
			return value
		}
	}
	require.Fail(t, "no such row", "%s %v", table, cells)
	return 0
}

// part is what a part of the work consumes, in units a second.
type part struct {
	name        string
	write, read float64
}

func (f figures) of(e example) []part {
	each := consumers * float64(e.shards)
	return []part{
		{"commits", e.events * f.commit, 0},
		{"snapshots", e.events * f.snapshot, 0},
		{"loads", 0, e.events * f.load},
		{"the projection", e.events * (f.projection + f.claim/eventsPerAggregate), 0},
		{"positions of the other group", e.events * f.position, 0},
		{"reading the tail, 2 groups", 0, each * tailUnits(e.events/float64(e.shards))},
		{"reading events, 2 groups", 0, consumers * e.events * (eventUnits + ownUnits/float64(e.members))},
		{"heartbeats", heartbeats * float64(e.members) * consumers, 0},
	}
}

// eventUnits is the number of read units of an event of 1 KB that a group reads by its key.
// ownUnits is how many more it costs if this process has written it.
const (
	eventUnits = 0.5
	ownUnits   = 0.5
)

// tailUnits returns an upper bound of the read units per second that a group needs to read the tail
// of a shard. events is the number of events of the shard per second.
func tailUnits(events float64) float64 { return max(min(4.5, 0.6+2*events), 0.15*events) }

func sum(parts []part) (write, read float64) {
	for _, p := range parts {
		write, read = write+p.write, read+p.read
	}
	return write, read
}

func onDemand(write, read float64) float64 { return seconds * (write*writePrice + read*readPrice) }

func provisioned(write, read float64) float64 {
	return hours * (math.Ceil(write/utilization)*writeCapacity + math.Ceil(read/utilization)*readCapacity)
}

// growth returns by how many GB the tables grow in a month.
func (f figures) growth(e example) float64 { return f.bytes * e.events * seconds / 1e9 }

func units(packed, json figures) string {
	var b strings.Builder
	b.WriteString("| for each event | write units | read units | for a million events | JSON: write units | read units | for a million events |\n|---|---|---|---|---|---|---|\n")
	row := func(name string, of func(figures) (write, read float64)) {
		fmt.Fprintf(&b, "| %s |", name)
		for _, f := range []figures{packed, json} {
			write, read := of(f)
			fmt.Fprintf(&b, " %s | %s | $%.2f |", number(write), number(read), 1e6*(write*writePrice+read*readPrice))
		}
		b.WriteString("\n")
	}
	row("commit", func(f figures) (_, _ float64) { return f.commit, 0 })
	row("snapshots", func(f figures) (_, _ float64) { return f.snapshot, 0 })
	row("load, without a cache", func(f figures) (_, _ float64) { return 0, f.load })
	row("a projection with a row for each aggregate", func(f figures) (_, _ float64) { return f.projection, eventUnits })
	row("a group with a handler", func(f figures) (_, _ float64) { return f.position, eventUnits })
	return b.String()
}

// processUnits returns the table of the units that a process of two steps consumes in the packed
// layout.
func processUnits(t *testing.T) string {
	t.Helper()
	step := func(rows ...string) (read, write float64) {
		for _, row := range rows {
			read += figure(t, processPage, "steps-packed", "reads", row)
			write += figure(t, processPage, "steps-packed", "writes", row)
		}
		return read, write
	}
	const later = "each later step that sends commands, or changes timeouts or the list of open processes"
	const list = "the first step with `EndsWhen`, and the one that ends the process"
	firstRead, firstWrite := step("the first step of a process", "commands, however many", "each timeout that is set", list)
	lastRead, lastWrite := step(later, "each timeout that is cancelled", list)
	parts := []part{
		{"the first step, with a command and a timeout", firstWrite, firstRead},
		{"the last step, which cancels the timeout", lastWrite, lastRead},
		{"publishing the command", cost(t, "other", "write units, packed", "Publish of 1 message, its stream known"), 0},
		{"positions of the manager's group, 2 events", 2, 2 * eventUnits},
		{"the position of the group `commands`, 1 command", 1, eventUnits},
	}
	var b strings.Builder
	b.WriteString("| for each process | write units | read units | for a million processes |\n|---|---|---|---|\n")
	row := func(name string, write, read float64) {
		fmt.Fprintf(&b, "| %s | %s | %s | $%.2f |\n", name, number(write), number(read), 1e6*(write*writePrice+read*readPrice))
	}
	for _, p := range parts {
		row(p.name, p.write, p.read)
	}
	write, read := sum(parts)
	row("**in all**", write, read)
	return b.String()
}

// commitSize and snapshotUnits are formulas of the page, with sizes in KB of 1,000 bytes.
func commitSize(events, each float64) float64 { return (events*each + 0.2 + 0.05*(events-1)) / 1.024 }

func snapshotUnits(state float64) float64 { return math.Ceil((state + 0.2) / 1.024) }

func TestTheFormulasOfThePageOfSizingAgreeWithThePageOfCosts(t *testing.T) {
	t.Parallel()
	for _, row := range []struct{ events, each float64 }{{1, 0.2}, {10, 0.2}, {1, 1}, {10, 1}, {1, 10}, {10, 10}} {
		cells := []string{number(row.events), number(row.each)}
		commit := cost(t, "commit-packed", "in all", cells...)
		assert.InDelta(t, commit, math.Ceil(commitSize(row.events, row.each))+1, 0, "a commit of %v", row)
		for _, state := range []float64{1, 10, 100} {
			with := cost(t, "commit-packed", "with a snapshot of "+number(state)+" KB", cells...)
			assert.InDelta(t, with-commit, snapshotUnits(state), 0, "a snapshot of %v KB", state)
		}
	}
	for _, state := range []float64{1, 10, 100} {
		want := cost(t, "load", "read units, packed", number(state), "0")
		assert.InDelta(t, want, math.Ceil((state+0.2)/4.096)+1, 0, "a load of %v KB without events", state)
	}
}

func (f figures) examples() string {
	var b strings.Builder
	b.WriteString("| events a second | shards | members | write units a second | read units a second | on-demand, a month | provisioned, a month | storage, more each month | storage after a year, a month |\n|---|---|---|---|---|---|---|---|---|\n")
	for _, e := range examples {
		write, read := sum(f.of(e))
		fmt.Fprintf(&b, "| %s | %d | %d | %s | %s | **%s** | **%s** | %s GB | %s |\n", thousands(e.events), e.shards, e.members,
			thousands(write), thousands(read), dollars(onDemand(write, read)), dollars(provisioned(write, read)),
			thousands(f.growth(e)), dollars(12*f.growth(e)*storagePrice))
	}
	return b.String()
}

// savings returns the table of the README: the smallest example, and what makes it cheaper.
func (f figures) savings() string {
	var b strings.Builder
	b.WriteString("| | on-demand, a month | provisioned, 70 % used, a month |\n|---|---|---|\n")
	row := func(name string, f figures, e example) {
		write, read := sum(f.of(e))
		fmt.Fprintf(&b, "| %s | %s | %s |\n", name, dollars(onDemand(write, read)), dollars(provisioned(write, read)))
	}
	cached := f
	cached.load = 0
	many, one := examples[0], examples[0]
	one.shards = 1
	row(fmt.Sprintf("%d shards, which serve 4,000 events a second; each command loads its aggregate", many.shards), f, many)
	row("1 shard", f, one)
	row("1 shard, and a cache that holds the aggregates", cached, one)
	return b.String()
}

func parts(packed, json figures, e example) string {
	var b strings.Builder
	b.WriteString("| part | write units a second | read units a second | on-demand, a month | the same, JSON |\n|---|---|---|---|---|\n")
	compressed := json.of(e)
	for i, p := range packed.of(e) {
		fmt.Fprintf(&b, "| %s | %s | %s | %s | %s |\n", p.name, number(p.write), number(p.read), dollars(onDemand(p.write, p.read)),
			dollars(onDemand(compressed[i].write, compressed[i].read)))
	}
	write, read := sum(packed.of(e))
	fmt.Fprintf(&b, "| **in all** | **%s** | **%s** | **%s** | **%s** |\n", number(write), number(read), dollars(onDemand(write, read)), dollars(onDemand(sum(compressed))))
	return b.String()
}

func compared(packed, json, classic figures, e example) string {
	var b strings.Builder
	b.WriteString("| layout | write units for a commit | with snapshots | read units for a load | bytes of an event | on-demand, a month |\n|---|---|---|---|---|---|\n")
	for _, layout := range []struct {
		name string
		figures
	}{{"packed", packed}, {"packed, JSON", json}, {"classic", classic}} {
		write, read := sum(layout.of(e))
		fmt.Fprintf(&b, "| %s | %s | %s | %s | %s | %s |\n", layout.name, number(layout.commit), number(layout.commit+layout.snapshot), number(layout.load),
			thousands(layout.bytes), dollars(onDemand(write, read)))
	}
	return b.String()
}

// twelfthMonth returns the table of what the twelfth month costs, by how events are stored.
func twelfthMonth(packed, json figures, e example) string {
	var b strings.Builder
	b.WriteString("| how events are stored | GB | storage | requests | in all |\n|---|---|---|---|---|\n")
	const months, kept = 12, 3
	row := func(name string, f figures, gb, journal, more float64, rare bool) {
		requests, cost := onDemand(sum(f.of(e)))+more, gb*storagePrice
		if rare { // the journal alone
			parts := f.of(e)
			requests += (rareAccess - 1) * onDemand(sum([]part{parts[0], parts[2], parts[5], parts[6]}))
			cost -= journal * (storagePrice - rareStorage)
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %s | **%s** |\n", name, thousands(gb), dollars(cost), dollars(requests), dollars(cost+requests))
	}
	for _, kind := range []struct {
		name string
		figures
	}{{"payloads that do not compress", packed}, {"JSON", json}} {
		f := kind.figures
		gb := months * f.growth(e)
		journal := gb * f.journal / f.bytes
		row(kind.name, f, gb, journal, 0, false)
		row("the same, the journal in Standard-IA", f, gb, journal, 0, true)
		left := f.growth(e)*kept + (f.growth(e)-f.removed*e.events*seconds/1e9)*(months-kept)
		row("the same in Standard, truncated after 3 months", f, left, 0, onDemand(e.events*f.truncate, 0), false)
	}
	return b.String()
}

func number(v float64) string {
	if v >= 1000 {
		return thousands(v)
	}
	return strconv.FormatFloat(math.Round(v*100)/100, 'f', -1, 64)
}

func dollars(v float64) string { return "$" + thousands(v) }

// thousands is a number without decimals.
func thousands(v float64) string {
	digits := strconv.FormatFloat(math.Round(v), 'f', 0, 64)
	for i := len(digits) - 3; i > 0; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	return digits
}
