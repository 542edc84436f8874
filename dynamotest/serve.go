package dynamotest

import (
	"context"
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
	reply := answer{status: 200, id: db.requests.Add(1), at: db.clock.Now()}
	call := Call{RequestBytes: len(body)}
	name, op, err := operationOf(header)
	call.Operation = name
	var in, out any
	if err == nil {
		in = op.input()
		err = wire.Decode(body, in)
	}
	if err == nil {
		err = op.parameters.check(name, in)
	}
	p := &plan{}
	if err == nil {
		p = db.plan(name, in)
		call.note(p)
		if err := p.before(ctx); err != nil {
			call.Err = err
			db.observe(call)
			return answer{}, err
		}
		var cost engine.Cost
		if err = p.refusal; err == nil {
			out, err = p.run(db.engine, op, &cost, in)
		}
		call.charge(&cost)
		if err == nil {
			reportCapacity(in, out, &cost)
		}
	}
	if err != nil {
		call.Err = err
		reply.status, reply.body = wire.EncodeError(err)
	} else {
		reply.body = wire.AppendTo(make([]byte, 0, initialReplySize), out)
	}
	call.ReplyBytes = len(reply.body)
	if p.loseReply {
		call.Err = errLost
		db.observe(call)
		return answer{}, errLost
	}
	db.observe(call)
	return reply, nil
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
