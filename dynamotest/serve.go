package dynamotest

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/millrace-dev/millrace/dynamotest/internal/engine"
	"github.com/millrace-dev/millrace/dynamotest/internal/wire"
)

// serve answers a request. An error means that the connection broke and there is no answer.
func (db *DB) serve(ctx context.Context, header http.Header, body []byte) (answer, error) {
	if db.closed.Load() {
		return answer{}, ErrClosed
	}
	reply := answer{status: http.StatusOK, id: db.requests.Add(1), at: db.clock.Now()}
	call := Call{RequestBytes: len(body)}
	defer func() { db.observe(call) }()
	out, err := db.attempt(ctx, header, body, &call)
	switch {
	case isBroken(err):
		call.Err = err
		return answer{}, err
	case err != nil:
		call.Err = err
		reply.status, reply.body = wire.EncodeError(err)
	default:
		reply.body = wire.AppendTo(make([]byte, 0, initialReplySize), out)
	}
	call.ReplyBytes = len(reply.body)
	return reply, nil
}

// isBroken tells whether the client gets no answer.
func isBroken(err error) bool {
	return errors.Is(err, errCut) || errors.Is(err, errLost) || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)
}

// attempt makes a call with the faults that happen to it. The error is DynamoDB's, or that of a broken connection.
func (db *DB) attempt(ctx context.Context, header http.Header, body []byte, call *Call) (out any, err error) {
	name, op, err := operationOf(header)
	call.Operation = name
	if err != nil {
		return nil, err
	}
	in := op.input()
	if err := wire.Decode(body, in); err != nil {
		return nil, err
	}
	if err := op.parameters.check(name, in); err != nil {
		return nil, err
	}
	p := db.plan(ctx, name, in)
	defer func() { call.note(p) }()
	if err := p.before(ctx); err != nil {
		return nil, err
	}
	if p.refusal != nil {
		return nil, p.refusal
	}
	var cost engine.Cost
	out, err = p.run(ctx, db.engine, op, &cost, in)
	call.charge(&cost)
	if p.loseReply {
		return nil, errLost
	}
	if err != nil {
		return nil, err
	}
	if err := ctx.Err(); err != nil { // the client has gone in the meantime
		return nil, err
	}
	reportCapacity(in, out, &cost)
	return out, nil
}

const initialReplySize = 512

// sleep waits, or until the client has gone.
func sleep(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return ctx.Err()
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
