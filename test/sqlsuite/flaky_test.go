package sqlsuite_test

import (
	"context"
	"database/sql/driver"
	"errors"
	"math/rand/v2"
	"sync"
)

var errLost = errors.New("the connection is lost")

// flaky is a driver that loses requests and replies, each with a probability of one in a number.
type flaky struct {
	driver.Connector
	mu     sync.Mutex
	random *rand.Rand
	oneIn  int // 0 for never
	// losesReply, if set, decides for each COMMIT whether its reply is lost, instead of chance.
	losesReply func() bool
}

func (f *flaky) lost() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.oneIn > 0 && f.random.IntN(f.oneIn) == 0 {
		return errLost
	}
	return nil
}

func (f *flaky) lostReply() error {
	f.mu.Lock()
	loses := f.losesReply
	f.mu.Unlock()
	if loses == nil {
		return f.lost()
	}
	if loses() {
		return errLost
	}
	return nil
}

// heal ends the faults.
func (f *flaky) heal() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.oneIn, f.losesReply = 0, nil
}

func (f *flaky) Connect(ctx context.Context) (driver.Conn, error) {
	if err := f.lost(); err != nil {
		return nil, err
	}
	conn, err := f.Connector.Connect(ctx)
	if err != nil {
		return nil, err
	}
	return &flakyConn{Conn: conn, faults: f}, nil
}

type flakyConn struct {
	driver.Conn
	faults *flaky
}

func (c *flakyConn) BeginTx(ctx context.Context, opts driver.TxOptions) (driver.Tx, error) {
	if err := c.faults.lost(); err != nil {
		return nil, err
	}
	tx, err := c.Conn.(driver.ConnBeginTx).BeginTx(ctx, opts)
	if err != nil {
		return nil, err
	}
	return &flakyTx{Tx: tx, faults: c.faults}, nil
}

func (c *flakyConn) ExecContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Result, error) {
	if err := c.faults.lost(); err != nil {
		return nil, err
	}
	result, err := c.Conn.(driver.ExecerContext).ExecContext(ctx, query, args)
	if err == nil {
		err = c.faults.lost()
	}
	return result, err
}

func (c *flakyConn) QueryContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Rows, error) {
	if err := c.faults.lost(); err != nil {
		return nil, err
	}
	return c.Conn.(driver.QueryerContext).QueryContext(ctx, query, args)
}

// ResetSession and IsValid report broken connections to database/sql, as without the faults.
func (c *flakyConn) ResetSession(ctx context.Context) error {
	if conn, ok := c.Conn.(driver.SessionResetter); ok {
		return conn.ResetSession(ctx)
	}
	return nil
}

func (c *flakyConn) IsValid() bool {
	conn, ok := c.Conn.(driver.Validator)
	return !ok || conn.IsValid()
}

type flakyTx struct {
	driver.Tx
	faults *flaky
}

// A Commit that does not arrive leaves the database to roll back by itself.
func (t *flakyTx) Commit() error {
	if t.faults.lost() != nil {
		return errors.Join(errLost, t.Rollback())
	}
	if err := t.Tx.Commit(); err != nil {
		return err
	}
	return t.faults.lostReply()
}
