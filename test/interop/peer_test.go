package interop_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/internal/dynamolocal"
	"github.com/millrace-dev/millrace/internal/dynamolocal/dynamolocaltest"
	"github.com/millrace-dev/millrace/journal"
)

// peer is a running peer.js.
type peer struct {
	t       *testing.T
	in      io.Writer
	answers *bufio.Reader
}

// peerAccount is an account as the peer loads it.
type peerAccount struct {
	Owner          string `json:"owner"`
	Balance        int    `json:"balance"`
	SequenceNumber uint64 `json:"sequenceNumber"`
	Version        uint64 `json:"version"`
}

// peerEvent is an event as the peer reads it.
type peerEvent struct {
	ID        string `json:"id"`
	Type      string `json:"type"`
	Number    uint64 `json:"number"`
	Aggregate string `json:"aggregate"`
	Millis    int64  `json:"millis"`
	Amount    int    `json:"amount"`
	Owner     string `json:"owner"`
}

type object map[string]any

// startPeer starts a peer for the tables of a config. Options are the options of its store.
func startPeer(t *testing.T, client *dynamodb.Client, config journal.Config, options object) *peer {
	t.Helper()
	command := exec.CommandContext(t.Context(), "node", "--no-warnings", "peer.js")
	command.Stderr = os.Stderr
	in, err := command.StdinPipe()
	require.NoError(t, err)
	out, err := command.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, command.Start())
	t.Cleanup(func() {
		// The peer ends with its input, or earlier with the context of the test.
		_ = in.Close()
		_ = command.Wait()
	})
	p := &peer{t: t, in: in, answers: bufio.NewReader(out)}

	credentials, err := client.Options().Credentials.Retrieve(t.Context())
	require.NoError(t, err)
	request := object{
		"endpoint": dynamolocaltest.Endpoint(t), "region": dynamolocal.Region, "accessKeyId": credentials.AccessKeyID,
		"tables":  object{"journal": config.Tables.Journal, "snapshot": config.Tables.Snapshot},
		"indexes": object{"journal": config.Classic.Indexes.JournalAggregate, "snapshot": config.Classic.Indexes.SnapshotAggregate},
		"shards":  config.Shards,
	}
	for key, value := range options {
		request[key] = value
	}
	p.do("connect", request)
	return p
}

// ask sends a request. It returns the error of the reply as text, or decodes the reply into result.
func (p *peer) ask(operation string, request object, result any) (refusal string) {
	p.t.Helper()
	request["op"] = operation
	line, err := json.Marshal(request)
	require.NoError(p.t, err)
	_, err = fmt.Fprintf(p.in, "%s\n", line)
	require.NoError(p.t, err, "is event-store-adapter-js installed? `make interop` does that")
	text, err := p.answers.ReadBytes('\n')
	require.NoError(p.t, err, "the peer ended: is event-store-adapter-js installed? `make interop` does that")
	var answer struct {
		OK    json.RawMessage `json:"ok"`
		Error string          `json:"error"`
	}
	require.NoError(p.t, json.Unmarshal(text, &answer))
	if answer.Error == "" && result != nil {
		require.NoError(p.t, json.Unmarshal(answer.OK, result))
	}
	return answer.Error
}

func (p *peer) do(operation string, request object) {
	p.t.Helper()
	require.Empty(p.t, p.ask(operation, request, nil), "the peer's %s", operation)
}

func (p *peer) open(id, owner string) { p.t.Helper(); p.do("open", object{"id": id, "owner": owner}) }

func (p *peer) deposit(id string, amount int, withSnapshot bool) {
	p.t.Helper()
	p.do("deposit", object{"id": id, "amount": amount, "withSnapshot": withSnapshot})
}

func (p *peer) load(id string) (a peerAccount) {
	p.t.Helper()
	require.Empty(p.t, p.ask("load", object{"id": id}, &a), "the peer's load of %s", id)
	return a
}

// events returns all events of an account, each with its number and aggregate inside.
func (p *peer) events(id string) (events []peerEvent) {
	p.t.Helper()
	require.Empty(p.t, p.ask("events", object{"id": id, "since": 1}, &events))
	for i, e := range events {
		require.EqualValues(p.t, i+1, e.Number)
		require.Equal(p.t, "account-"+id, e.Aggregate)
		assert.NotEmpty(p.t, e.ID)
		assert.NotZero(p.t, e.Millis)
	}
	return events
}
