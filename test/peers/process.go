package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"time"

	"github.com/millrace-dev/millrace/internal/dynamolocal"
)

// process is a running program with stores of others. It answers one request at a time.
type process struct {
	command *exec.Cmd
	in      io.WriteCloser
	replies *bufio.Reader
}

func startProcess(ctx context.Context, folder, program string, args ...string) (*process, error) {
	command := exec.CommandContext(ctx, program, args...)
	command.Dir, command.Stderr = folder, os.Stderr
	in, err := command.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := command.StdoutPipe()
	if err != nil {
		return nil, err
	}
	return &process{command: command, in: in, replies: bufio.NewReader(out)}, command.Start()
}

// stop closes the input of the process, which ends it, and waits for that.
func (p *process) stop() error {
	return errors.Join(p.in.Close(), p.command.Wait())
}

type request struct {
	Op       string   `json:"op"`
	Store    string   `json:"store,omitempty"`
	ID       string   `json:"id,omitempty"`
	Texts    []string `json:"texts,omitempty"`
	Snapshot bool     `json:"snapshot,omitempty"`

	// For open.
	Kind        string `json:"kind,omitempty"`
	Endpoint    string `json:"endpoint,omitempty"`
	Region      string `json:"region,omitempty"`
	AccessKeyID string `json:"accessKeyId,omitempty"`
}

type reply struct {
	Error  string  `json:"error"`
	Micros float64 `json:"micros"`
	Events int     `json:"events"`
	Text   string  `json:"text"`
}

func (p *process) ask(r request) (reply, error) {
	var answer reply
	line, err := json.Marshal(r)
	if err != nil {
		return answer, err
	}
	if _, err := fmt.Fprintf(p.in, "%s\n", line); err != nil {
		return answer, fmt.Errorf("%s ended; `make bench-peers` fetches what it needs: %w", p.command, err)
	}
	text, err := p.replies.ReadBytes('\n')
	if err != nil {
		return answer, fmt.Errorf("%s ended; `make bench-peers` fetches what it needs: %w", p.command, err)
	}
	if err := json.Unmarshal(text, &answer); err != nil {
		return answer, fmt.Errorf("%s replied %q: %w", p.command, text, err)
	}
	if answer.Error != "" {
		return answer, fmt.Errorf("%s: %s of %s: %s", r.Store, r.Op, r.ID, answer.Error)
	}
	return answer, nil
}

// remote is a store of a process.
type remote struct {
	process *process
	name    string
}

// ofFamily is a store of the event-store-adapter family. With a tail index it has the tables of the
// classic layout, and otherwise those that its documentation describes.
func ofFamily(name string, p *process, tail bool) contender {
	return contender{name: name, feed: tail, snapshots: true, open: func(ctx context.Context, db database) (store, error) {
		return openRemote(ctx, db, p, name, "adapter", func(prefix string) error { return createFamily(ctx, db.client, prefix, tail) })
	}}
}

// castore stores each event as an item of one table. It has no feed and stores no states.
func castore(p *process) contender {
	return contender{name: "castore (no feed)", open: func(ctx context.Context, db database) (store, error) {
		return openRemote(ctx, db, p, "castore", "castore", func(prefix string) error { return createCastore(ctx, db.client, prefix) })
	}}
}

func openRemote(ctx context.Context, db database, p *process, name, kind string, create func(prefix string) error) (store, error) {
	r := remote{process: p, name: strings.ReplaceAll(name, " ", "-")}
	if err := create(r.name); err != nil {
		return nil, err
	}
	_, err := p.ask(request{Op: "open", Store: r.name, Kind: kind, Endpoint: db.endpoint, Region: dynamolocal.Region, AccessKeyID: db.accessKeyID})
	return r, errors.Join(err, ctx.Err())
}

func (r remote) appendTo(_ context.Context, id string, texts []string, snapshot bool) (time.Duration, error) {
	answer, err := r.process.ask(request{Op: "append", Store: r.name, ID: id, Texts: texts, Snapshot: snapshot})
	return answer.took(), err
}

func (r remote) load(_ context.Context, id string) (loaded, error) {
	answer, err := r.process.ask(request{Op: "load", Store: r.name, ID: id})
	return loaded{took: answer.took(), events: answer.Events, text: answer.Text}, err
}

func (r remote) command(ctx context.Context, id, text string) (time.Duration, error) {
	got, err := r.load(ctx, id)
	if err != nil {
		return 0, err
	}
	took, err := r.appendTo(ctx, id, []string{text}, false)
	return got.took + took, err
}

func (r reply) took() time.Duration { return time.Duration(r.Micros * float64(time.Microsecond)) }
