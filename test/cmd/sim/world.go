package main

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"io"
	"strconv"

	"github.com/millrace-dev/millrace/test/campaign"
	"github.com/millrace-dev/millrace/test/sim"
	"github.com/millrace-dev/millrace/test/sim/machine"
)

// runWorld runs one world on the machine. The plan in its report begins with the digest of all
// events.
func runWorld(ctx context.Context, m *machine.Machine, w sim.World) (r campaign.Report, err error) {
	var seed [32]byte
	binary.LittleEndian.PutUint64(seed[0:], w.Seed)
	binary.LittleEndian.PutUint64(seed[8:], w.Number)
	digest, tail := fnv.New64a(), &tail{most: 32 << 10}
	traces := []io.Writer{digest, tail}
	if w.Trace != nil {
		traces = append(traces, w.Trace)
	}
	var report bytes.Buffer
	err = m.Run(ctx, seed, arguments(w), &report, io.MultiWriter(traces...))
	if err == nil {
		err = json.Unmarshal(report.Bytes(), &r)
	}
	r.Plan, r.Trace = fmt.Sprintf("digest %016x, %s", digest.Sum64(), r.Plan), tail.bytes
	return r, err
}

// tail keeps the end of the data that is written to it.
type tail struct {
	bytes []byte
	most  int
}

func (t *tail) Write(p []byte) (int, error) {
	t.bytes = append(t.bytes, p...)
	if drop := len(t.bytes) - t.most; drop > 0 {
		t.bytes = append(t.bytes[:0], t.bytes[drop:]...)
	}
	return len(p), nil
}

// arguments returns the arguments of this command and of the guest, which are the same.
func arguments(w sim.World) []string {
	args := []string{"-seed", strconv.FormatUint(w.Seed, 10), "-world", strconv.FormatUint(w.Number, 10)}
	if w.Small {
		args = append(args, "-small")
	}
	if w.Sabotage != "" {
		args = append(args, "-sabotage", string(w.Sabotage))
	}
	if w.Disrupt != "" {
		args = append(args, "-disrupt", w.Disrupt)
	}
	if w.Layout != "" {
		args = append(args, "-layout", string(w.Layout))
	}
	return args
}
