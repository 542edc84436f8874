package awsproof

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/millrace-dev/millrace/journal"
)

// Target is the database to measure, and what belongs to it.
type Target struct {
	Client   *dynamodb.Client
	Endpoint string // of an emulator; empty for AWS
	// Partition is "aws" in most regions.
	Partition, Region, Account string
	// Metrics are those of CloudWatch. Nil if there are none.
	Metrics Metrics
	// Assume returns a client of a role whose permissions a policy limits. Nil if no role can be
	// assumed.
	Assume func(ctx context.Context, policy string) (*dynamodb.Client, error)
	// Writer returns another process, which calls [Write]. Nil if there cannot be one.
	Writer func(ctx context.Context, w Writing) (*exec.Cmd, error)
}

// MaxBudget is the highest budget, in dollars.
const MaxBudget = 20

// Options are the options of a run.
type Options struct {
	Budget      float64 // in dollars, at most MaxBudget
	Yes         bool    // start without a question
	Only        string  // names of steps, with commas between; all if empty
	Rate        float64 // events a second of the load
	Duration    time.Duration
	Hot         time.Duration // of each of the two hot partitions
	Samples     int           // requests of each short measurement
	MetricsWait time.Duration // until the metrics are complete, at most
	Restore     bool          // also restore a table
}

// Errors of [Run] before it begins.
var (
	ErrNotConfirmed = errors.New("not confirmed: type yes, or use -yes")
	ErrTooExpensive = errors.New("the expected cost exceeds the budget")
	ErrOptions      = errors.New("options")
)

// step is a part of a run. It returns its part of the report, also with an error.
type step struct {
	name, title string
	run         func(*proof, context.Context) (string, error)
	expect      func(o Options) amount
}

// The load comes between the failed requests and the step that reads their metrics, because metrics
// are complete minutes later.
var steps = []step{
	{"conformance", "Conformance", (*proof).conformance, func(Options) amount { return amount{Read: 4_000, Write: 4_000} }},
	{"charges", "Failed requests", (*proof).sendFailing, func(o Options) amount { return amount{Write: 16 * float64(o.Samples)} }},
	{"stale", "Stale reads by the age of the write", (*proof).stale, func(o Options) amount {
		return amount{Read: float64(o.Samples) * (float64(len(ages)) + 1), Write: 2 * float64(o.Samples)}
	}},
	{"cancelled", "Reasons of cancelled transactions", (*proof).cancelled, func(Options) amount { return amount{Write: 100} }},
	{"indexes", "Units of indexes", (*proof).indexRules, func(Options) amount { return amount{Write: 50} }},
	{"conflicts", "Conflicts of plain and transactional requests", (*proof).conflicts, func(o Options) amount {
		return amount{Read: 3 * float64(o.Samples), Write: 12 * float64(o.Samples)}
	}},
	{"latency", "Latency", (*proof).latency, func(o Options) amount { return amount{Read: 50_000, Write: 20 * float64(o.Samples)} }},
	{"policies", "Policies of permissions.md", (*proof).policies, func(Options) amount { return amount{Read: 1_000, Write: 1_000} }},
	{"load", "Load", (*proof).load, func(o Options) amount {
		events := o.Rate * o.Duration.Seconds() // the units of sizing.md, rounded up
		return amount{Read: 6 * events, Write: 6 * events}
	}},
	{"hot-partition", "Throttling of a hot partition", (*proof).hotPartition, func(o Options) amount {
		return amount{Write: hotRate * hotUnits * o.Hot.Seconds()}
	}},
	{"hot-index", "Throttling of an index", (*proof).hotIndex, func(o Options) amount {
		return amount{Write: 2 * hotRate * hotUnits * o.Hot.Seconds()}
	}},
	{"restore", "Restore", (*proof).restore, func(o Options) amount {
		if !o.Restore {
			return amount{}
		}
		// Backup and restore have prices of their own: $0.35 for a GB in all. A count reads it all.
		return amount{Write: 0.5 / writePrice, Read: o.Rate * o.Duration.Seconds()}
	}},
	{"metrics", "Units in CloudWatch", (*proof).metrics, func(Options) amount { return amount{Write: 0.05 / writePrice} }},
	{"clock", "The Date header", (*proof).clock, func(Options) amount { return amount{} }},
}

// proof is a run.
type proof struct {
	Target
	Options
	prefix   string
	meter    *meter
	journals map[journal.Layout]*journal.Journal
	charges  []charge
}

// Run runs the steps, and deletes the tables in any case. It prints what it does to out, and asks
// for confirmation, which it reads from in. The report goes to out and, if it is not nil, to what
// create returns, which is called after the confirmation. The context ends the run early.
//
// Errors: [ErrOptions], [ErrTooExpensive], [ErrNotConfirmed], [ErrBudget], and those of steps.
func Run(ctx context.Context, target Target, o Options, in io.Reader, out io.Writer, create func() (io.WriteCloser, error)) (err error) {
	chosen, err := o.steps()
	if err != nil {
		return err
	}
	p := &proof{Target: target, Options: o, prefix: newPrefix(), journals: map[journal.Layout]*journal.Journal{}}
	if err := p.confirm(chosen, in, out); err != nil {
		return err
	}
	file, err := create()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	report := io.MultiWriter(out, file)

	working, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	p.meter = &meter{region: target.Region, prefix: p.prefix, budget: o.Budget, spent: func() { stop(ErrBudget) }}
	p.Client = p.meter.client(target.Client)
	// Also after a panic, and with a client that is not limited.
	defer func() { err = errors.Join(err, Clean(context.WithoutCancel(ctx), target.Client, p.prefix, out)) }()
	return p.report(working, chosen, report)
}

// steps returns the steps that the options choose.
func (o Options) steps() (chosen []step, err error) {
	if o.Budget <= 0 || o.Budget > MaxBudget || o.Rate <= 0 || o.Duration <= 0 || o.Hot <= 0 || o.Samples < 1 {
		return nil, fmt.Errorf("%w: the budget must be above $0 and at most $%d, and the others above 0", ErrOptions, MaxBudget)
	}
	if o.Only == "" {
		return steps, nil
	}
	for name := range strings.SplitSeq(o.Only, ",") {
		i := slices.IndexFunc(steps, func(s step) bool { return s.name == name })
		if i < 0 {
			return nil, fmt.Errorf("%w: no step has the name %q", ErrOptions, name)
		}
		chosen = append(chosen, steps[i])
	}
	return chosen, nil
}

// confirm prints the plan, and returns an error if the run must not begin.
func (p *proof) confirm(chosen []step, in io.Reader, out io.Writer) error {
	where := fmt.Sprintf("in the account %s, region %s, on AWS", p.Account, p.Region)
	if p.Endpoint != "" {
		where = "at " + p.Endpoint + ", which is not AWS"
	}
	var expected float64
	var plan strings.Builder
	for _, s := range chosen {
		dollars := s.expect(p.Options).dollars(p.Region)
		expected += dollars
		fmt.Fprintf(&plan, "  $%5.2f  %-14s %s\n", dollars, s.name, s.title)
	}
	_, err := fmt.Fprintf(out, "This creates tables %s, runs the steps below, and deletes the tables.\nThe names of the tables begin with %s. After a kill, delete them with:\n"+
		"  make aws-proof PROOF=\"clean %s\"\n%s  $%5.2f  expected in all, of a budget of $%.2f, at which the run stops\n",
		where, p.prefix, p.prefix, plan.String(), expected, p.Budget)
	if err != nil {
		return err
	}
	if expected > p.Budget {
		return fmt.Errorf("%w: $%.2f of $%.2f: shorten -duration or -hot, or choose steps with -only", ErrTooExpensive, expected, p.Budget)
	}
	if p.Yes {
		return nil
	}
	_, _ = fmt.Fprint(out, "Type yes to begin: ")
	if line, _ := bufio.NewReader(in).ReadString('\n'); strings.TrimSpace(line) != "yes" {
		return ErrNotConfirmed
	}
	return nil
}

// report runs the steps, and writes the report. A step that fails does not end the run.
func (p *proof) report(ctx context.Context, chosen []step, report io.Writer) error {
	start := time.Now()
	first := fmt.Sprintf("# Proof on AWS, region %s, account ...%s", p.Region, p.Account[max(0, len(p.Account)-4):])
	if p.Endpoint != "" {
		first = "# Not on AWS: a run on the emulator at " + p.Endpoint
	}
	_, err := fmt.Fprintf(report, "%s, %s\n", first, start.UTC().Format("2006-01-02 15:04 MST"))
	for _, s := range chosen {
		if ctx.Err() != nil {
			break
		}
		before := p.meter.total()
		text, stepErr := guarded(func() (string, error) { return s.run(p, ctx) })
		consumed := p.meter.total().minus(before)
		if consumed != (amount{}) {
			text += "\nConsumed: " + p.consumed(consumed) + ".\n"
		}
		_, writeErr := fmt.Fprintf(report, "\n## %s\n\n%s", s.title, text)
		if stepErr != nil {
			stepErr = fmt.Errorf("%s: %w", s.name, stepErr)
			_, _ = fmt.Fprintf(report, "\n**Failed:**\n\n```\n%v\n```\n", stepErr)
		}
		err = errors.Join(err, writeErr, stepErr)
	}
	if cause := context.Cause(ctx); cause != nil {
		err = errors.Join(fmt.Errorf("stopped early: %w", cause), err)
		_, _ = fmt.Fprintf(report, "\n**Stopped early: %v.**\n", cause)
	}
	_, writeErr := fmt.Fprintf(report, "\n## In all\n\n%s in %s, of a budget of $%.2f.\n", p.consumed(p.meter.total()), time.Since(start).Round(time.Second), p.Budget)
	return errors.Join(err, writeErr)
}

func (p *proof) consumed(a amount) string {
	return fmt.Sprintf("%.1f read units and %.1f write units, and at most %.0f write units of failed requests: at most $%.4f",
		a.Read, a.Write, a.Presumed, a.dollars(p.Region))
}

// guarded turns a panic into an error.
func guarded(do func() (string, error)) (text string, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("panic: %v\n%s", r, debug.Stack())
		}
	}()
	return do()
}
