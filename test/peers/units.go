package main

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/millrace-dev/millrace/dynamotest"
)

// bill is what an operation of a store costs.
type bill struct {
	read, write float64
	requests    []string // with the units of each
}

// units returns the read and the write units, without those that are 0.
func (b bill) units() string {
	switch {
	case b.read == 0:
		return fmt.Sprintf("%g w", b.write)
	case b.write == 0:
		return fmt.Sprintf("%g r", b.read)
	}
	return fmt.Sprintf("%g r %g w", b.read, b.write)
}

// price returns the price in read units. A write unit costs as much as five.
func (b bill) price() float64 { return b.read + 5*b.write }

// costs has the bills by operation, contender and size. A bill without requests means that the
// store cannot do it.
type costs struct {
	contenders []contender
	bills      [][][]bill
}

// countUnits performs each operation once on dynamotest, which the other processes reach over HTTP.
func countUnits(ctx context.Context, contenders []contender) (*costs, error) {
	db := dynamotest.Open()
	defer db.Close()
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	server := &http.Server{Handler: db.Handler(), ReadHeaderTimeout: time.Minute}
	defer func() { _ = server.Close() }()
	go func() { _ = server.Serve(listener) }()

	stores, err := openStores(ctx, database{client: db.Client(), endpoint: "http://" + listener.Addr().String(), accessKeyID: "peers"}, contenders)
	if err != nil {
		return nil, err
	}
	c := &costs{contenders: contenders}
	for number, o := range operations {
		bills := make([][]bill, len(stores))
		for i, s := range stores {
			bills[i] = make([]bill, len(sizes))
			for k, size := range sizes {
				if o.snapshots && !contenders[i].snapshots {
					continue
				}
				if bills[i][k], err = billOf(ctx, db, o, newWork(s, nameOf(number, size, 0), size)); err != nil {
					return nil, fmt.Errorf("%s: %s: %w", contenders[i].name, o.name, err)
				}
			}
		}
		c.bills = append(c.bills, bills)
	}
	return c, nil
}

func billOf(ctx context.Context, db *dynamotest.DB, o operation, w work) (b bill, err error) {
	if o.prepare != nil {
		if err := o.prepare(ctx, w); err != nil {
			return b, err
		}
	}
	recording := db.Record()
	defer recording.Stop()
	if _, err := o.run(ctx, w); err != nil {
		return b, err
	}
	for _, call := range recording.Calls() {
		b.requests = append(b.requests, fmt.Sprintf("%s %g", strings.TrimSpace(call.Operation+" "+call.Index), call.ReadUnits+call.WriteUnits))
	}
	b.read, b.write = recording.Units()
	return b, nil
}

// table has the round trips and the units of each operation.
func (c *costs) table() string {
	return table(c.contenders, func(row, column int) string {
		bills := c.bills[row][column]
		if len(bills[0].requests) == 0 {
			return ""
		}
		cell := fmt.Sprint(len(bills[0].requests))
		for _, b := range bills {
			cell += " / " + b.units()
		}
		return cell
	})
}

// lead is a store that needs fewer round trips or units than packed.
type lead struct{ operation, requests string }

// leads returns the operations for which a store with a feed is ahead of packed, with the requests
// of packed and of the cheapest of these stores.
func (c *costs) leads() (all []lead) {
	for row, o := range operations {
		for k, size := range sizes {
			best, packed := 0, c.bills[row][0][k]
			for column := range c.contenders {
				other := c.bills[row][column][k]
				if !c.contenders[column].feed || len(other.requests) == 0 ||
					(len(other.requests) >= len(packed.requests) && other.price() >= packed.price()) {
					continue
				}
				if best == 0 || other.price() < c.bills[row][best][k].price() {
					best = column
				}
			}
			if best > 0 {
				all = append(all, lead{o.name, fmt.Sprintf("%g KB: packed %s; %s %s", kb(size), strings.Join(packed.requests, ", "),
					c.contenders[best].name, strings.Join(c.bills[row][best][k].requests, ", "))})
			}
		}
	}
	return all
}

func kb(bytes int) float64 { return float64(bytes) / 1000 }
