package sim

import (
	"bytes"
	"context"
	"io"
	"math/rand/v2"
	"net/http"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/millrace-dev/millrace/test/draw"
)

// moment is the action before which a process is suspended.
type moment string

const (
	beforeFirstWrite moment = "before its first write in a term"
	midFlush         moment = "in mid-flush"
	midClaim         moment = "in mid-claim"
)

// suspension stops a process and lets it continue later, as SIGSTOP and SIGCONT do. The request
// that it was about to send arrives when it continues, even if its sender has cancelled it by then:
// a process that continues may send a request before it reads the clock.
type suspension struct {
	at moment
	// The number of such requests that pass before.
	after int
	lasts time.Duration
	// sent says that the request was sent, and only its reply waits.
	sent bool
}

// suspend suspends a process repeatedly until ctx ends.
func (p *process) suspend(ctx context.Context, every time.Duration, r *rand.Rand) {
	lease := p.group.config.Timing.LeaseDuration
	for ctx.Err() == nil {
		pauseFor(ctx, exponential(r, every))
		s := &suspension{
			at: draw.Pick(r, beforeFirstWrite, midFlush, midClaim), after: r.IntN(3), lasts: between(r, lease, lease*5/2), sent: r.IntN(3) == 0,
		}
		if s.at == beforeFirstWrite {
			s.after, s.sent = 0, false
		}
		if l := p.life; l != nil {
			l.wire.prepare(s)
		}
	}
}

// prepare sets the next suspension of the wire.
func (w *wire) prepare(s *suspension) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.suspension = s
}

// meet suspends the process if it is the moment, and reports whether the request that it is about
// to send is sent before.
func (w *wire) meet(in any) (sent bool) {
	kind, term := requestOf(in), termOf(in)
	w.mu.Lock()
	defer w.mu.Unlock()
	first := term != "" && !w.terms[term]
	if first {
		w.terms[term] = true
	}
	s := w.suspension
	if s == nil || w.isDead() {
		return false
	}
	var is bool
	switch s.at {
	case beforeFirstWrite:
		is = first
	case midFlush:
		is = kind == positionWriting && !isClaim(in)
	case midClaim:
		is = kind == positionWriting && isClaim(in) || isPositionRead(in)
	}
	if !is {
		return false
	}
	if s.after > 0 {
		s.after--
		return false
	}
	w.suspension = nil
	w.stalled = time.Now().Add(s.lasts)
	w.suspended = w.stalled
	w.oracle.note("suspend "+string(s.at), w.member.name)
	return s.sent
}

// isSuspended reports whether the process is suspended now.
func (w *wire) isSuspended() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return time.Now().Before(w.suspended)
}

// sendLater returns a function that sends a request when the process continues, without its sender.
func (w *wire) sendLater(request *http.Request) (send func()) {
	arrive := w.copyOf(request)
	return func() {
		if w.gate(context.Background()) == nil {
			arrive()
		}
	}
}

// copyOf returns a function that lets a copy of a request arrive, whatever its sender does.
func (w *wire) copyOf(request *http.Request) (arrive func()) {
	body, err := io.ReadAll(request.Body)
	if err != nil {
		return func() {}
	}
	request = request.Clone(request.Context())
	request.Body = io.NopCloser(bytes.NewReader(body))
	return func() {
		if response, err := w.arrive(request); err == nil {
			_ = response.Body.Close()
		}
	}
}

// isClaim reports whether a request claims a position.
func isClaim(in any) bool {
	writes := positionWrites(in)
	return len(writes) > 0 && writes[0].claim
}

// isCheckpoint reports whether a request writes rows of the checkpoint table other than
// memberships.
func isCheckpoint(in any) bool {
	switch in := in.(type) {
	case *dynamodb.UpdateItemInput:
		return aws.ToString(in.TableName) == checkpointTable && text(in.Key["skey"]) != membershipRow
	case *dynamodb.DeleteItemInput:
		return aws.ToString(in.TableName) == checkpointTable
	case *dynamodb.TransactWriteItemsInput:
		return len(positionWrites(in)) > 0 || len(recordWrites(in)) > 0
	}
	return false
}

// termOf returns the shard and epoch under which a request writes, or "" for none.
func termOf(in any) string {
	term := func(key, values map[string]types.AttributeValue) string {
		if epoch := values[valueEpoch]; epoch != nil && strings.Contains(text(key["pkey"]), "-") {
			return text(key["pkey"]) + " " + numberText(epoch)
		}
		return ""
	}
	switch in := in.(type) {
	case *dynamodb.UpdateItemInput:
		return term(in.Key, in.ExpressionAttributeValues)
	case *dynamodb.DeleteItemInput:
		return term(in.Key, in.ExpressionAttributeValues)
	case *dynamodb.TransactWriteItemsInput:
		for _, item := range in.TransactItems {
			if u := item.Update; u != nil && aws.ToString(u.TableName) == checkpointTable {
				return term(u.Key, u.ExpressionAttributeValues)
			}
		}
	}
	return ""
}
