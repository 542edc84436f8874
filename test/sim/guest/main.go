// Command guest runs one world of package sim and prints its report as JSON, and all events of the
// world to standard error. It is built for WebAssembly, and its host provides time and random
// numbers:
//
//	GOOS=wasip1 GOARCH=wasm go build ./test/sim/guest
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"runtime/debug"

	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/test/sim"
)

func main() {
	var w sim.World
	flag.Uint64Var(&w.Seed, "seed", 1, "seed of all worlds")
	flag.Uint64Var(&w.Number, "world", 0, "number of the world")
	flag.BoolVar(&w.Small, "small", false, "a tenth of the size")
	flag.Func("sabotage", "sabotage of the world", func(name string) error {
		w.Sabotage = sim.Sabotage(name)
		return nil
	})
	flag.StringVar(&w.Disrupt, "disrupt", "", "disruptions of the world, none, or drawn if empty")
	flag.Func("layout", "layout of the journal, drawn if empty", func(name string) error {
		w.Layout = journal.Layout(name)
		return nil
	})
	flag.Parse()
	// Worlds have many pointers. Less frequent garbage collection saves a quarter of the time.
	debug.SetGCPercent(-1)
	debug.SetMemoryLimit(512 << 20)
	trace := bufio.NewWriterSize(os.Stderr, 1<<15)
	w.Trace = trace
	report, err := w.Run(context.Background())
	_ = trace.Flush()
	if err == nil {
		err = json.NewEncoder(os.Stdout).Encode(report)
	}
	if err != nil {
		_, _ = fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
