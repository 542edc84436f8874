package command_test

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/cmd/millrace/internal/command"
	"github.com/millrace-dev/millrace/internal/storage"
	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/journal/compress"
	"github.com/millrace-dev/millrace/journal/encrypt"
)

func keyOf(partition, sort string) map[string]types.AttributeValue {
	return map[string]types.AttributeValue{
		"pkey": &types.AttributeValueMemberS{Value: partition}, "skey": &types.AttributeValueMemberS{Value: sort},
	}
}

func TestStreamShowsTheHeadAndTheEvents(t *testing.T) {
	t.Parallel()
	s := setupTables(t)
	at := time.Date(2025, 6, 1, 12, 0, 0, 5_000_000, time.UTC)
	j := s.open(t, journal.Config{Now: func() time.Time { return at }})
	deposits(t, j, account("42"), 1, 2)
	_, err := j.Internal().Append(t.Context(), storage.Commit{
		Aggregate: account("42"), Expected: 2, Events: []storage.Event{deposit(account("42"), 3)},
		Snapshot: &journal.Snapshot{Number: 3, Schema: 2, Payload: make([]byte, 2048)},
	})
	require.NoError(t, err)

	head, events, _ := strings.Cut(s.ok(t, "stream", "account", "42"), "\n\n")
	assert.Regexp(t, `(?m)^aggregate +account 42$`, head)
	assert.Regexp(t, `(?m)^version +3$`, head)
	assert.Regexp(t, `(?m)^snapshot +of event 3, 2\.0 KiB, schema 2$`, head)
	rows := cells(t, events)
	require.Len(t, rows, 3)
	assert.Equal(t, map[string]string{
		"NUMBER": "2", "TIME": "2025-06-01T12:00:00.005Z", "TYPE": "account.deposited.v1", "SIZE": "13 B", "ID": "account-42/2",
		"METADATA": "correlation_id=request-1",
	}, rows[1])
}

func TestStreamShowsARangeWithPayloads(t *testing.T) {
	t.Parallel()
	s := setupTables(t)
	deposits(t, s.open(t, journal.Config{}), account("42"), 1, 30)

	_, events, _ := strings.Cut(s.ok(t, "stream", "account", "42", "--from", "28", "--to", "99", "--payload"), "\n\n")
	rows := cells(t, events)
	require.Len(t, rows, 3)
	assert.Equal(t, "28", rows[0]["NUMBER"])
	assert.Equal(t, `{"Amount":30}`, rows[2]["PAYLOAD"])
}

func TestStreamAsJSONHasAllThatIsStored(t *testing.T) {
	t.Parallel()
	s := setupTables(t)
	j := s.open(t, journal.Config{})
	_, err := j.Internal().Append(t.Context(), storage.Commit{Aggregate: account("42"), Events: []storage.Event{
		{ID: "a", Type: "one", Payload: []byte(`{"n": 9007199254740993, "html": "<b>"}`), Metadata: map[string]string{"user": "ann"}},
		{ID: "b", Type: "two", Payload: []byte("plain text")},
		{ID: "c", Type: "three", Payload: []byte{0xff, 0xfe}},
		{ID: "d", Type: "four"},
	}})
	require.NoError(t, err)

	out := s.ok(t, "stream", "account", "42", "--json", "--payload")
	assert.Contains(t, out, `"payload":{"n":9007199254740993,"html":"<b>"}`, "numbers must not lose digits")
	objects := lines(t, out)
	require.Len(t, objects, 5)
	assert.Equal(t, "head", objects[0]["kind"])
	assert.InDelta(t, 4, objects[0]["version"], 0)
	assert.Equal(t, map[string]any{"type": "account", "value": "42"}, objects[1]["aggregate"])
	assert.Equal(t, map[string]any{"user": "ann"}, objects[1]["metadata"])
	assert.NotEmpty(t, objects[1]["commit"])
	assert.Equal(t, "plain text", objects[2]["payload_text"])
	assert.Equal(t, "//4=", objects[3]["payload_base64"])
	assert.NotContains(t, objects[4], "payload")
	assert.NotContains(t, s.ok(t, "stream", "account", "42", "--json"), "payload", "they can be large and private")
}

// openEncrypted opens the journal with an encryption that the command cannot decode.
func (s *shell) openEncrypted(t *testing.T) *journal.Journal {
	t.Helper()
	require.NoError(t, encrypt.CreateTable(t.Context(), s.client, encrypt.KeysConfig{}))
	wrapper, err := encrypt.LocalWrapper(bytes.Repeat([]byte{1}, encrypt.KeyBytes))
	require.NoError(t, err)
	keys, err := encrypt.NewKeys(s.client, wrapper, encrypt.KeysConfig{})
	require.NoError(t, err)
	secret, err := encrypt.AESGCM(encrypt.Config{Keys: keys})
	require.NoError(t, err)
	return s.open(t, journal.Config{Encodings: []journal.Encoding{secret}})
}

func TestStreamDecodesWhatIsCompressedAndShowsThatTheRestIsEncrypted(t *testing.T) {
	t.Parallel()
	s := setupTables(t)
	gzip, err := compress.Gzip(compress.Config{MinBytes: -1})
	require.NoError(t, err)
	text := `{"note":"` + strings.Repeat("again and ", 30) + `"}`
	_, err = s.open(t, journal.Config{Encodings: []journal.Encoding{gzip}}).Internal().Append(t.Context(), storage.Commit{
		Aggregate: account("zipped"), Events: []storage.Event{{ID: "z", Type: "noted", Payload: []byte(text)}},
	})
	require.NoError(t, err)
	deposits(t, s.openEncrypted(t), account("secret"), 1, 1)

	zipped := s.ok(t, "stream", "account", "zipped", "--payload")
	assert.Contains(t, zipped, text)
	hidden := s.ok(t, "stream", "account", "secret", "--payload")
	assert.Contains(t, hidden, "(aes-gcm, ")
	objects := lines(t, s.ok(t, "stream", "account", "secret", "--payload", "--json"))
	assert.Equal(t, true, objects[1]["undecoded"])
	assert.NotEmpty(t, objects[1]["payload_base64"])
}

func TestStreamSaysWhatWasTruncatedAndDeleted(t *testing.T) {
	t.Parallel()
	s := setupTables(t)
	j := s.open(t, journal.Config{})
	deposits(t, j, account("42"), 1, 9)
	_, err := j.Internal().Append(t.Context(), storage.Commit{
		Aggregate: account("42"), Expected: 9, Events: []storage.Event{deposit(account("42"), 10)},
		Snapshot: &journal.Snapshot{Number: 10, Payload: []byte("{}")},
	})
	require.NoError(t, err)
	require.NoError(t, j.Truncate(t.Context(), account("42"), 8, journal.RemoveOptions{}))

	o := s.run(t, "stream", "account", "42", "--from", "2")
	assert.Equal(t, command.ExitOK, o.code)
	assert.Regexp(t, `(?m)^removed +events before 8$`, o.out)
	assert.Contains(t, o.err, "Events before 8 were removed.")
	_, events, _ := strings.Cut(o.out, "\n\n")
	assert.Equal(t, "8", cells(t, events)[0]["NUMBER"])

	require.NoError(t, j.Delete(t.Context(), account("42"), 10, journal.RemoveOptions{}))
	out := s.ok(t, "stream", "account", "42")
	assert.Regexp(t, `(?m)^deleted +20`, out)
	assert.NotContains(t, out, "NUMBER")
}

func TestStreamOfAnUnknownAggregateSaysWhatTheNamesAre(t *testing.T) {
	t.Parallel()
	s := setupTables(t)
	deposits(t, s.open(t, journal.Config{}), account("1"), 1, 1)

	o := s.run(t, "stream", "account", "nobody")
	assert.Equal(t, command.ExitFailure, o.code)
	assert.Empty(t, o.out)
	assert.Contains(t, o.err, `"nobody" of type "account" has no events`)
	assert.Contains(t, o.err, "aggregate.Define")
}

func TestStreamShowsWhatComesBeforeAMissingEventAndFails(t *testing.T) {
	t.Parallel()
	s := setupTables(t)
	j := s.open(t, journal.Config{})
	deposits(t, j, account("42"), 1, 20)
	_, err := s.client.DeleteItem(t.Context(), &dynamodb.DeleteItemInput{
		TableName: aws.String("journal"), Key: keyOf(storage.ShardKey("account", j.Internal().Shard(account("42"))), "account-42-12"),
	})
	require.NoError(t, err)

	o := s.run(t, "stream", "account", "42")
	assert.Equal(t, command.ExitFailure, o.code)
	_, events, _ := strings.Cut(o.out, "\n\n")
	assert.Len(t, cells(t, events), 11)
	assert.Contains(t, o.err, "is missing")
	assert.Contains(t, o.err, "millrace verify")
}

func TestWhatIsStoredCannotSteerTheTerminal(t *testing.T) {
	t.Parallel()
	s := setupTables(t)
	_, err := s.open(t, journal.Config{}).Internal().Append(t.Context(), storage.Commit{Aggregate: account("42"), Events: []storage.Event{
		{ID: "a", Type: "noted", Payload: []byte("\x1b[2Jgone"), Metadata: map[string]string{"user": "ann\nbob"}},
	}})
	require.NoError(t, err)

	out := s.ok(t, "stream", "account", "42", "--payload")
	assert.NotContains(t, out, "\x1b")
	assert.Contains(t, out, `"\x1b[2Jgone"`)
	assert.Contains(t, out, `"user=ann\nbob"`)
}
