package soak

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"sync/atomic"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go"

	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/publisher"
	"github.com/millrace-dev/millrace/repository"
	"github.com/millrace-dev/millrace/test/draw"
)

// writer is a process with its own repository and publisher.
type writer struct {
	*running
	index  int
	random *rand.Rand
	strand *strand
	wire   *wire
	client *dynamodb.Client

	// These fields belong to a life, which ends with a crash.
	life      int
	alive     context.Context //nolint:containedctx // a process that can be killed
	kill      context.CancelFunc
	journal   *journal.Journal
	repo      *repository.Repository[state]
	publisher *publisher.Publisher
	held      map[string]repository.Aggregate[state]
	unknown   []uncertain
	cached    bool // repo has a cache
}

// uncertain is a command that may have been written.
type uncertain struct {
	command uint64
	count   int
	err     *journal.OutcomeUnknownError
}

func (w *running) newWriter(index int, r *rand.Rand) *writer {
	one := &writer{running: w, index: index, random: draw.Derive(r), strand: w.turns.join(), kill: func() {}}
	one.wire = &wire{turns: w.turns, random: draw.Derive(r)}
	one.strand.wire = one.wire
	one.client = one.wire.connect(w.Client, w.network)
	return one
}

// work executes commands, and starts a new life after each crash.
func (w *writer) work(ctx context.Context) error {
	for range w.Commands {
		if w.alive == nil || w.alive.Err() != nil {
			if err := w.live(ctx); err != nil {
				return err
			}
		}
		c := choose(w.random)
		w.truth.see(c.name)
		c.run(w)
		if err := ctx.Err(); err != nil {
			return err
		}
	}
	w.kill()
	return w.publisher.Close()
}

// live starts the process, without anything from an earlier life.
func (w *writer) live(ctx context.Context) (err error) {
	w.kill()
	if w.publisher != nil {
		if err := w.publisher.Close(); err != nil {
			return err
		}
	}
	w.life++
	w.wire.light(0, nil)
	w.held, w.unknown = map[string]repository.Aggregate[state]{}, nil
	// Random ids would make requests differ from run to run.
	var made atomic.Uint64
	config := drawJournal(w.random)
	config.Now, config.Layout, config.Encodings = w.now, w.Layout, w.encodings
	config.NewID = func() string { return fmt.Sprintf("w%d.%d-%d", w.index, w.life, made.Add(1)) }
	if w.journal, err = w.open(ctx, config); err != nil {
		return err
	}
	settings := drawRepository(w.random)
	w.cached = settings.Cache > 0
	if w.removes {
		sameSnapshots(&settings)
	}
	if w.repo, err = repository.New(w.journal, things, settings); err != nil {
		return err
	}
	// A publisher looks for a lost commit for seconds of real time, so it is only in worlds without
	// turns.
	if !w.turns.free.Load() {
		config.RetryBudget = patient
	}
	j, err := w.open(ctx, config)
	if err != nil {
		return err
	}
	p := publisher.Config{Journal: j, Concurrency: 1, CommitTimeout: patient, StreamID: fmt.Sprint("stream", w.index)}
	if w.turns.free.Load() {
		p.Concurrency = 4
	}
	if w.publisher, err = publisher.NewPublisher(p, nil); err != nil {
		return err
	}
	life, kill := context.WithCancel(ctx)
	w.alive, w.kill = context.WithValue(life, lifeKey{}, life), kill
	return nil
}

// open opens a journal. It tries again after errors.
func (w *writer) open(ctx context.Context, config journal.Config) (j *journal.Journal, err error) {
	for range 100 {
		if j, err = journal.Open(ctx, w.client, config); err == nil || ctx.Err() != nil {
			break
		}
	}
	return j, err
}

// recordOutcome records the outcome of a command with n events, and checks its error. First is the
// number of the first event after a success.
func (w *writer) recordOutcome(command uint64, how string, n int, first uint64, err error) {
	var unknown *journal.OutcomeUnknownError
	var conflict *journal.ConflictError
	var large *journal.TooLargeError
	var attempts *repository.AttemptsError
	switch {
	case err == nil:
		w.truth.record(command, outcome{sure: n, first: first})
		return
	case errors.As(err, &unknown):
		w.truth.see("outcome unknown")
		w.truth.record(command, outcome{maybe: n, first: unknown.First, unknown: unknown})
		w.unknown = append(w.unknown, uncertain{command, n, unknown})
		return
	case errors.As(err, &attempts):
		w.truth.see("attempts used up")
	case errors.As(err, &conflict):
		w.truth.see("conflict")
		// the version could not be read any more
		if conflict.Actual == 0 && w.Layout == journal.Packed {
			w.truth.see("conflict with an unknown version")
		} else if conflict.Actual <= conflict.Expected {
			w.truth.report(Wrong, "%s: a conflict without a reason: %v", how, err)
		}
	case errors.Is(err, journal.ErrThrottled), errors.Is(err, journal.ErrContended):
		w.truth.see("throttled")
	case errors.As(err, &large):
		w.truth.see("too large: " + large.Unit)
	case errors.As(err, new(*journal.DeletedError)):
		w.truth.see("refused after deletion")
	case errors.Is(err, errRefused):
		w.truth.see("refused")
	case w.crashed(err):
		w.truth.see("crashed, nothing written")
	case readFailed(err, "PutItem"):
		w.truth.see("read failed")
	default:
		w.truth.report(Wrong, "%s: an error that is not documented: %v", how, err)
	}
	w.truth.record(command, outcome{})
}

// crashed reports whether an error follows from the end of the process.
func (w *writer) crashed(err error) bool {
	return w.alive.Err() != nil && errors.Is(err, context.Canceled)
}

// readFailed reports whether a read has failed with an error of the SDK, or took longer than an
// attempt may. It also returns true for a failed write that may be repeated, unless commits
// contains its operation.
func readFailed(err error, commits ...string) bool {
	var operation *smithy.OperationError
	if !errors.As(err, &operation) {
		return errors.Is(err, journal.ErrUnavailable)
	}
	if operation.OperationName == "TransactWriteItems" || slices.Contains(commits, operation.OperationName) {
		return false
	}
	var internal *types.InternalServerError
	return errors.As(err, &internal) || errors.Is(err, io.ErrUnexpectedEOF)
}
