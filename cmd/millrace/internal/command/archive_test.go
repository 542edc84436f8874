package command_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
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
)

// setupAccounts is setupTables with n accounts of nine events each.
func setupAccounts(t *testing.T, n int) *shell {
	t.Helper()
	s := setupTables(t)
	j := s.open(t, journal.Config{})
	for i := range n {
		deposits(t, j, account(fmt.Sprint(i)), 1, 9)
	}
	return s
}

func TestAnExportIsImportedIntoAnotherJournal(t *testing.T) {
	t.Parallel()
	s := setupAccounts(t, 5)
	file := filepath.Join(t.TempDir(), "backup.jsonl")

	assert.Regexp(t, `^exported 5 aggregates, 45 events, [0-9.]+ KiB\n$`, s.ok(t, "export", file))
	info, err := os.Stat(file)
	require.NoError(t, err)
	assert.Equal(t, os.FileMode(0o600), info.Mode().Perm(), "it is as confidential as the journal")

	other := setup(t)
	other.ok(t, "create", "--shards", "7", "--layout", "classic")
	assert.Regexp(t, `^imported 5 aggregates, 45 events, [0-9.]+ KiB\n$`, other.ok(t, "import", file))
	assert.Contains(t, other.ok(t, "import", file), "45 events already present")
	assert.Equal(t, "5 aggregates, 45 events: sound\n", other.ok(t, "verify", "--against", file))
	done := lines(t, other.ok(t, "import", file, "--json"))
	assert.Equal(t, "imported", done[0]["kind"])
	assert.InDelta(t, 45, done[0]["present"], 0)
}

func TestAnArchiveGoesThroughPipes(t *testing.T) {
	t.Parallel()
	s := setupAccounts(t, 5)
	o := s.run(t, "export", "-", "--type", "account", "--id", "3", "--json")
	require.Equal(t, command.ExitOK, o.code)
	assert.Equal(t, "exported", lines(t, o.err)[0]["kind"], "standard output has the archive alone")

	other := setupTables(t)
	other.env.In = strings.NewReader(o.out)
	assert.Contains(t, other.ok(t, "import", "-"), "imported 1 aggregate, 9 events")
	assert.Regexp(t, `(?m)^version +9$`, other.ok(t, "stream", "account", "3"))
}

func TestAnEmptySelectionIsRefused(t *testing.T) {
	t.Parallel()
	s := setupAccounts(t, 1)
	file := filepath.Join(t.TempDir(), "backup.jsonl")
	s.ok(t, "export", file)
	for _, args := range [][]string{
		{"import", file, "--type", "account", "--id", ""},
		{"import", file, "--type", ""},
		{"export", file + ".2", "--type", "account", "--id="},
		{"verify", "--type", ""},
		{"aggregates", ""},
		{"aggregates", "account", "--after", ""},
		{"process", "list", ""},
		{"process", "list", "order-saga", ""},
	} {
		o := s.run(t, args...)
		assert.Equal(t, command.ExitUsage, o.code, "%q", args)
		assert.Contains(t, o.err, " is empty", "%q", args)
	}
	assert.NoFileExists(t, file+".2")
}

func TestAnExportDoesNotOverwrite(t *testing.T) {
	t.Parallel()
	s := setupAccounts(t, 1)
	file := filepath.Join(t.TempDir(), "backup.jsonl")
	require.NoError(t, os.WriteFile(file, []byte("dear diary"), 0o600))

	o := s.run(t, "export", file)
	assert.Equal(t, command.ExitFailure, o.code)
	assert.Contains(t, o.err, "already exists: continue it with --resume")
	o = s.run(t, "export", file, "--resume")
	assert.Equal(t, command.ExitFailure, o.code)
	assert.Contains(t, o.err, "not an archive")
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	assert.Equal(t, "dear diary", string(text))
}

func TestAnExportWithoutAnAggregateLeavesNoFile(t *testing.T) {
	t.Parallel()
	s := setupAccounts(t, 3)
	file := filepath.Join(t.TempDir(), "account.jsonl")
	for _, resume := range []string{"--resume=false", "--resume"} {
		o := s.run(t, "export", "--type", "account", "--id", "nosuch", file, resume)
		assert.Equal(t, command.ExitFailure, o.code)
		assert.Contains(t, o.err, "not found")
		assert.NotContains(t, o.err, "so far")
		assert.NoFileExists(t, file)
	}
	assert.Contains(t, s.ok(t, "export", "--type", "account", "--id", "1", file), "exported 1 aggregate, 9 events")
	_ = s.run(t, "export", "--resume", "--type", "account", "--id", "nosuch", file)
	assert.FileExists(t, file, "another export has made it")
}

func TestAnExportOfWhatIsNew(t *testing.T) {
	t.Parallel()
	s := setupAccounts(t, 3)
	file := filepath.Join(t.TempDir(), "new.jsonl")
	assert.Contains(t, s.ok(t, "export", file, "--type", "account", "--since", "1h"), "exported 3 aggregates")
	o := s.run(t, "export", file, "--type", "account", "--since", "1h")
	assert.Contains(t, o.err, "already exists: delete it, or choose another name")
	require.NoError(t, os.Remove(file))
}

func TestAnImportHasTheReasonWhyASnapshotIsLeftOut(t *testing.T) {
	t.Parallel()
	s := setupAccounts(t, 1)
	heads, err := s.client.Scan(t.Context(), &dynamodb.ScanInput{TableName: aws.String("snapshot")})
	require.NoError(t, err)
	for _, head := range heads.Items { // another program stores its snapshot
		head["payload"] = &types.AttributeValueMemberB{Value: []byte("{}")}
		_, err := s.client.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: aws.String("snapshot"), Item: head})
		require.NoError(t, err)
	}
	file := filepath.Join(t.TempDir(), "backup.jsonl")
	s.ok(t, "export", file)
	s.ok(t, "create", "--layout", "packed", "--shards", "2", "--prefix", "new-")

	text := s.ok(t, "import", file, "--prefix", "new-")

	const reason = "snapshot of account-0: another program wrote the snapshot, so it is not known of which event it is"
	assert.Regexp(t, `, 1 snapshot left out \(`+reason+`\)\n$`, text)
	assert.Equal(t, reason, lines(t, s.ok(t, "import", file, "--prefix", "new-", "--json"))[0]["snapshot_reason"])
}

func TestAnExportThatWasCutOffGoesOn(t *testing.T) {
	t.Parallel()
	s := setupAccounts(t, 12)
	file := filepath.Join(t.TempDir(), "backup.jsonl")
	s.ok(t, "export", file)
	whole, err := os.ReadFile(file)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(file, whole[:len(whole)*2/3], 0o600))

	o := s.run(t, "import", file)
	assert.Equal(t, command.ExitFailure, o.code)
	assert.Contains(t, o.err, "`millrace export --resume` continues")
	assert.Contains(t, s.ok(t, "export", file, "--resume"), "exported 12 aggregates, 108 events")
	again, err := os.ReadFile(file)
	require.NoError(t, err)
	assert.Equal(t, string(whole), string(again))
	// The file ends like a file on a full disk.
	require.NoError(t, os.WriteFile(file, append(again[:len(again)/3], make([]byte, len(again))...), 0o600))
	s.ok(t, "export", file, "--resume")
	again, err = os.ReadFile(file)
	require.NoError(t, err)
	assert.Equal(t, string(whole), string(again), "nothing may be left of the broken end")
	assert.Contains(t, s.ok(t, "export", file, "--resume"), "exported 12 aggregates, 108 events", "nothing is left to do")
	assert.Contains(t, s.ok(t, "export", file+".new", "--resume"), "exported 12 aggregates, 108 events", "a loop can repeat one command")
}

func TestAnExportGoesOnWithWhatItWasBegunWith(t *testing.T) {
	t.Parallel()
	s := setupAccounts(t, 3)
	file := filepath.Join(t.TempDir(), "account-1.jsonl")
	s.ok(t, "export", file, "--resume", "--type", "account", "--id", "1")
	assert.Contains(t, s.ok(t, "export", file, "--resume"), "exported 1 aggregate, 9 events")

	o := s.run(t, "export", file, "--resume", "--type", "account")
	assert.Equal(t, command.ExitUsage, o.code)
	assert.Contains(t, o.err, "was begun with another --type or --id")
}

func TestAnExportGoesOnWithItsOwnJournalAlone(t *testing.T) {
	t.Parallel()
	s := setupAccounts(t, 3)
	s.ok(t, "create", "--layout", "classic", "--shards", "2", "--prefix", "bank-")
	file := filepath.Join(t.TempDir(), "backup.jsonl")
	s.ok(t, "export", file)
	whole, err := os.ReadFile(file)
	require.NoError(t, err)
	cut := whole[:len(whole)-200]
	require.NoError(t, os.WriteFile(file, cut, 0o600))

	o := s.run(t, "export", "--prefix", "bank-", file, "--resume")

	assert.Equal(t, command.ExitFailure, o.code)
	assert.Contains(t, o.err, `the archive is of the journal table "journal", not of "bank-journal"`)
	assert.Contains(t, o.err, "choose another file")
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	assert.Equal(t, string(cut), string(text), "nothing is cut off")
	assert.Contains(t, s.ok(t, "export", file, "--resume"), "exported 3 aggregates, 27 events")
}

// cutting ends a context at the first output.
type cutting struct {
	bytes.Buffer
	cut context.CancelFunc
}

func (c *cutting) Write(p []byte) (int, error) {
	c.cut()
	return c.Buffer.Write(p)
}

func TestAnInterruptedExportSaysHowToGoOn(t *testing.T) {
	t.Parallel()
	s := setupAccounts(t, 12)
	file := filepath.Join(t.TempDir(), "backup.jsonl")
	ctx, interrupt := context.WithCancel(t.Context())
	defer interrupt()
	log := &cutting{cut: interrupt}
	s.env.Out, s.env.Err = &bytes.Buffer{}, log

	// The first progress interrupts the export.
	code := command.Run(ctx, []string{"export", file, "--progress"}, s.env)
	assert.Equal(t, command.ExitFailure, code)
	assert.Regexp(t, "millrace: interrupted\n.* so far. `millrace export .* --resume` continues.\n$", log.String())
	assert.Contains(t, s.ok(t, "export", file, "--resume"), "exported 12 aggregates, 108 events")
	assert.Equal(t, "12 aggregates, 108 events: sound\n", s.ok(t, "verify", "--against", file))
}

func TestProgressIsForTerminalsAndForThoseWhoAsk(t *testing.T) {
	t.Parallel()
	s := setupAccounts(t, 12)
	dir := t.TempDir()

	o := s.run(t, "export", filepath.Join(dir, "1"))
	assert.Empty(t, o.err)
	now, step := time.Now(), time.Millisecond
	s.env.Now = func() time.Time { now = now.Add(step); return now }
	o = s.run(t, "export", filepath.Join(dir, "2"), "--progress")
	assert.Regexp(t, `^1 aggregate, 9 events, [0-9.]+ KiB, [^ ]+ [KMG]?i?B a second\n$`, o.err, "a line now, the next in five seconds")
	s.env.ErrTerminal, step = true, time.Second
	o = s.run(t, "export", filepath.Join(dir, "3"))
	assert.Equal(t, 12, strings.Count(o.err, "a second"))
	assert.NotContains(t, o.err, "\n", "it is one line that changes")
	assert.True(t, strings.HasSuffix(o.err, "\r\x1b[K"), "and goes: %q", o.err)
}

func TestAnImportPassesOverAnotherHistoryOnlyWhenItIsTold(t *testing.T) {
	t.Parallel()
	s := setupAccounts(t, 3)
	file := filepath.Join(t.TempDir(), "backup.jsonl")
	s.ok(t, "export", file)
	other := setupTables(t)
	j := other.open(t, journal.Config{})
	_, err := j.Internal().Append(t.Context(), storage.Commit{Aggregate: account("1"), Events: []storage.Event{{ID: "mine", Type: "other"}}})
	require.NoError(t, err)

	o := other.run(t, "import", file)
	assert.Equal(t, command.ExitFailure, o.code)
	assert.Equal(t, "millrace: import: account-1 was not changed: at event 1 the journal has another event id than the archive: "+
		"import into another journal, or leave the aggregate out\n--skip-different imports the other aggregates.\n", o.err)
	o = other.run(t, "import", file, "--skip-different")
	assert.Equal(t, command.ExitFailure, o.code)
	assert.Contains(t, o.err, "left out: ")
	assert.Contains(t, o.err, "1 aggregate of the journal")
	version, err := j.Version(t.Context(), account("2"))
	require.NoError(t, err)
	assert.Equal(t, uint64(9), version, "the others are imported")
}

func TestAnExportLeavesOutWhatCannotBeReadOnlyWhenItIsTold(t *testing.T) {
	t.Parallel()
	s := setupAccounts(t, 3)
	loseEvents(t, s, s.open(t, journal.Config{}), "1", "4")
	dir := t.TempDir()

	o := s.run(t, "export", filepath.Join(dir, "1"))
	assert.Equal(t, command.ExitFailure, o.code)
	assert.Contains(t, o.err, "--skip-unreadable")
	o = s.run(t, "export", filepath.Join(dir, "2"), "--skip-unreadable")
	assert.Equal(t, command.ExitFailure, o.code, "it is not all of the journal")
	assert.Contains(t, o.err, "left out account-1: ")
	assert.Regexp(t, `^exported 2 aggregates, 18 events, .*, 1 aggregate left out\n$`, o.out)
}
