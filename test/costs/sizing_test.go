package costs

import (
	"fmt"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

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

// All examples have these values: events of 1 KB, one for each commit, states of 10 KB, 100 events
// for each aggregate and snapshot.
const (
	eventKB, stateKB   = "1", "10"
	eventsPerAggregate = 100
	eventsPerSnapshot  = 100
	consumers          = 2     // groups: a projection, and one with a handler
	heartbeats         = 0.4   // write units a second, for each member and group
	overhead           = 100.0 // bytes of each item and index entry that DynamoDB bills
	metadataBytes      = 250.0 // of an item beside its payload, as the page of costs says
)

// example is a load, and the deployment that serves it.
type example struct {
	events          float64 // a second
	shards, members int
}

var examples = []example{{10, 16, 2}, {100, 16, 2}, {500, 16, 4}, {5_000, 32, 16}}

// figures holds figures of the page of costs, docs/reference/cost.md.
type figures struct {
	commit, first, snapshot, load, projection, position float64
	bytes                                               float64 // of an event in the tables
}

func TestThePageOfSizingComputesWithTheFiguresOfThePageOfCosts(t *testing.T) {
	t.Parallel()
	packed, classic := packedFigures(t), classicFigures(t)
	compareTables(t, sizingPage, map[string]string{
		"sizing-units": packed.units(), "sizing-examples": packed.examples(), "sizing-parts": packed.parts(examples[2]),
		"sizing-process": processUnits(t), "sizing-layouts": compared(packed, classic, examples[2]),
	})
	compareTables(t, readmePage, map[string]string{"sizing-readme": packed.savings()})
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
	write, read := sum(packedFigures(t).of(examples[2]))
	all := hours * (write*writeCapacity + read*readCapacity)
	text := strings.Join(strings.Fields(string(page)), " ")
	for _, sentence := range []string{
		fmt.Sprintf("provisioned capacity costs %s a month if all of it is used, and %s if 20 %% of it is used. On-demand costs %s.",
			dollars(all), dollars(all/0.2), dollars(onDemand(write, read))),
		fmt.Sprintf("The two cost the same when about %.0f %% of the provisioned capacity is used.", 100*all/onDemand(write, read)),
	} {
		assert.Contains(t, text, sentence)
	}
}

func packedFigures(t *testing.T) (f figures) {
	f.commit = cost(t, "commit-packed", "in all", "1", eventKB)
	f.first = cost(t, "commit-packed", "the first of an aggregate", "1", eventKB) - f.commit
	f.snapshot = cost(t, "commit-packed", "with a snapshot of "+stateKB+" KB", "1", eventKB) - f.commit
	f.load = (cost(t, "load", "read units, packed", stateKB, "0") + cost(t, "load", "read units, packed", stateKB, "100", eventKB)) / 2
	f.bytes = stored(t, journal.Packed) + (10_000+metadataBytes+overhead)/eventsPerAggregate
	return f.consumed(t)
}

func classicFigures(t *testing.T) (f figures) {
	f.commit = cost(t, "commit-classic", "in all", eventKB, stateKB)
	f.snapshot = cost(t, "commit-classic", "with a snapshot", eventKB, stateKB) - f.commit
	f.load = (cost(t, "load", "read units, classic", stateKB, "0") + cost(t, "load", "read units, classic", stateKB, "100", eventKB)) / 2
	const copies = 2 // of a state: in the head and in its index
	f.bytes = stored(t, journal.Classic) + copies*(10_000+metadataBytes+overhead)/eventsPerAggregate
	return f.consumed(t)
}

func (f figures) consumed(t *testing.T) figures {
	f.projection = cost(t, "handling", "write units", "a projection, an event")
	f.position = 1
	return f
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

// stored returns the bytes that an event takes in the journal and its indexes, to the nearest 10.
// The exact number depends on the zeros at the end of the dates of the run.
func stored(t *testing.T, layout journal.Layout) float64 {
	t.Helper()
	w := newWorld(t, layout)
	r := w.repository(repository.Config{Snapshots: repository.Never, Cache: 1})
	bytes := func() (all float64) {
		out, err := w.db.Client().DescribeTable(t.Context(), &dynamodb.DescribeTableInput{TableName: aws.String("journal")})
		require.NoError(t, err)
		all = float64(*out.Table.TableSizeBytes) + overhead*float64(*out.Table.ItemCount)
		for _, index := range out.Table.GlobalSecondaryIndexes {
			all += float64(*index.IndexSizeBytes) + overhead*float64(*index.ItemCount)
		}
		return all
	}
	before := bytes()
	for range eventsPerAggregate {
		testjournal.Execute(t, r, id, always(written(1_000, 0)))
	}
	t.Logf("%s: %v bytes for each event", layout, (bytes()-before)/eventsPerAggregate)
	return 10 * math.Round((bytes()-before)/eventsPerAggregate/10)
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
		{"the first commit of each aggregate", e.events * f.first / eventsPerAggregate, 0},
		{"snapshots", e.events * f.snapshot / eventsPerSnapshot, 0},
		{"loads", 0, e.events * f.load},
		{"the projection", e.events * f.projection, 0},
		{"positions of the other group", e.events * f.position, 0},
		{"reading the tail, 2 groups", 0, each * tailUnits(e.events/float64(e.shards))},
		{"reading events, 2 groups", 0, consumers * e.events * eventUnits},
		{"heartbeats", heartbeats * float64(e.members) * consumers, 0},
	}
}

// eventUnits is the number of read units of an event of 1 KB that a group reads by its key.
const eventUnits = 0.5

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

func (f figures) units() string {
	var b strings.Builder
	b.WriteString("| for each event | write units | read units | for a million events |\n|---|---|---|---|\n")
	row := func(name string, write, read float64) {
		fmt.Fprintf(&b, "| %s | %s | %s | $%.2f |\n", name, number(write), number(read), 1e6*(write*writePrice+read*readPrice))
	}
	row("commit", f.commit, 0)
	row("first commit of an aggregate, 1 in 100", f.first/eventsPerAggregate, 0)
	row("snapshot of 10 KB, 1 in 100", f.snapshot/eventsPerSnapshot, 0)
	row("load, without a cache", 0, f.load)
	row("a projection that updates one item", f.projection, eventUnits)
	row("a group with a handler", f.position, eventUnits)
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

func (f figures) parts(e example) string {
	var b strings.Builder
	b.WriteString("| part | write units a second | read units a second | on-demand, a month |\n|---|---|---|---|\n")
	for _, p := range f.of(e) {
		fmt.Fprintf(&b, "| %s | %s | %s | %s |\n", p.name, number(p.write), number(p.read), dollars(onDemand(p.write, p.read)))
	}
	write, read := sum(f.of(e))
	fmt.Fprintf(&b, "| **in all** | **%s** | **%s** | **%s** |\n", number(write), number(read), dollars(onDemand(write, read)))
	return b.String()
}

func compared(packed, classic figures, e example) string {
	var b strings.Builder
	b.WriteString("| layout | write units for a commit | read units for a load | bytes of an event | on-demand, a month |\n|---|---|---|---|---|\n")
	for _, layout := range []struct {
		name string
		figures
	}{{"packed", packed}, {"classic", classic}} {
		write, read := sum(layout.of(e))
		fmt.Fprintf(&b, "| %s | %s | %s | %s | %s |\n", layout.name, number(layout.commit), number(layout.load), thousands(layout.bytes), dollars(onDemand(write, read)))
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
