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
	id, at := db.requests.Add(1), db.clock.Now()
	r, err := db.read(header, body)
	var reply answer
	if err != nil {
		reply = refused(err)
		db.observe(Call{Operation: r.name, RequestBytes: len(body), ReplyBytes: len(reply.body), Err: err})
	} else if reply, err = db.injector.serve(ctx, r); err != nil {
		return answer{}, err
	}
	reply.id, reply.at = id, at
	return reply, nil
}

// read decodes a request. Its errors are DynamoDB's.
func (db *DB) read(header http.Header, body []byte) (request, error) {
	name, op, err := operationOf(header)
	r := request{name: name, op: op}
	if err != nil {
		return r, err
	}
	if r.body, err = decompress(header, body); err != nil {
		return r, err
	}
	r.in = op.input()
	if err := wire.Decode(r.body, r.in); err != nil {
		return r, err
	}
	return r, op.parameters.check(name, r.in)
}

// perform executes a call.
func (db *DB) perform(ctx context.Context, r request, p *plan, call *Call) (answer, error) {
	p.limitPage(r.in)
	var cost engine.Cost
	out, err := r.op.run(db.engine, &cost, r.in, p.interference(ctx))
	call.charge(&cost)
	if err != nil {
		call.Err = err
		return refused(err), nil
	}
	p.hide(out)
	reportCapacity(r.in, out, &cost)
	return answer{status: http.StatusOK, body: wire.AppendTo(make([]byte, 0, initialReplySize), out)}, nil
}

func (db *DB) touches(_ context.Context, in any) ([]engine.Touch, map[string]error) {
	return db.engine.Touches(in), nil
}

func (db *DB) hasIndex(_ context.Context, table, index string) (bool, error) {
	return db.engine.HasIndex(table, index), nil
}

func (db *DB) remember(d time.Duration) { db.engine.Remember(d) }

const initialReplySize = 512

// sleep waits for d. It ends earlier if the client gives up.
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
