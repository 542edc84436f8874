package main

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/dynamotest"
	"github.com/millrace-dev/millrace/test/awsproof"
)

const runEnv = "MILLRACE_AWSPROOF_RUN"

// TestMain makes this program the command, also as the process that only writes.
func TestMain(m *testing.M) {
	if os.Getenv(runEnv) != "" {
		main()
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// command returns a process of the command that uses the database.
func command(t *testing.T, db *dynamotest.DB, args ...string) *exec.Cmd {
	t.Helper()
	server := httptest.NewServer(db.Handler())
	t.Cleanup(server.Close)
	program, err := os.Executable()
	require.NoError(t, err)
	c := exec.CommandContext(t.Context(), program, args...)
	c.Env = append(os.Environ(), runEnv+"=1", "AWS_ENDPOINT_URL="+server.URL, "AWS_REGION=us-east-1",
		"AWS_ACCESS_KEY_ID=a", "AWS_SECRET_ACCESS_KEY=b", "AWS_CONFIG_FILE=", "AWS_PROFILE=")
	c.Dir = t.TempDir()
	return c
}

func TestAnotherProcessIsMeasuredAndTheReportIsAFile(t *testing.T) {
	t.Parallel()
	db := dynamotest.New(t)
	c := command(t, db, "-yes", "-only", "latency,clock", "-samples", "5", "-report", "report.md")
	out, err := c.CombinedOutput()
	require.NoError(t, err, "%s", out)
	report, err := os.ReadFile(filepath.Join(c.Dir, "report.md"))
	require.NoError(t, err)
	assert.Contains(t, string(out), string(report))
	assert.Regexp(t, "^# Not on AWS: a run on the emulator at http://127.0.0.1:", string(report))
	for _, row := range []string{`\| another process, polled \| \S+s \|`, `\| another process, woken over NATS \| \S+s \|`} {
		assert.Regexp(t, row, string(report))
	}
	assert.Empty(t, tables(t, db))
}

func TestTheCommandRefusesWithoutConfirmation(t *testing.T) {
	t.Parallel()
	db := dynamotest.New(t)
	c := command(t, db)
	c.Stdin = strings.NewReader("y\n")
	out, err := c.CombinedOutput()
	require.ErrorContains(t, err, "exit status 1")
	assert.Contains(t, string(out), awsproof.ErrNotConfirmed.Error())
	assert.Empty(t, tables(t, db))
	files, err := os.ReadDir(c.Dir)
	require.NoError(t, err)
	assert.Empty(t, files)
}

// begin starts a run, and returns its prefix when it has tables. output waits for its end.
func begin(t *testing.T, db *dynamotest.DB) (c *exec.Cmd, prefix string, output func() string) {
	t.Helper()
	writes := make(chan struct{}, 1)
	db.Inject(dynamotest.Latency(0, time.Millisecond), dynamotest.On("PutItem"), dynamotest.Matching(func(string, any) bool {
		select {
		case writes <- struct{}{}:
		default:
		}
		return true
	}))
	c = command(t, db, "-yes", "-only", "load", "-rate", "5", "-duration", "1h")
	var stderr bytes.Buffer
	out, err := c.StdoutPipe()
	require.NoError(t, err)
	c.Stderr = &stderr
	require.NoError(t, c.Start())
	lines := bufio.NewReader(out)
	form := regexp.MustCompile(`clean (millrace-proof-[a-z2-7]{12})"`)
	for prefix == "" {
		line, err := lines.ReadString('\n')
		require.NoError(t, err)
		if found := form.FindStringSubmatch(line); found != nil {
			prefix = found[1]
		}
	}
	<-writes
	return c, prefix, func() string {
		rest, _ := io.ReadAll(lines)
		_ = c.Wait()
		return string(rest) + stderr.String()
	}
}

func TestTablesAreDeletedAfterASignal(t *testing.T) {
	t.Parallel()
	for _, signal := range []os.Signal{os.Interrupt, syscall.SIGTERM} {
		db := dynamotest.New(t)
		c, prefix, output := begin(t, db)
		require.NoError(t, c.Process.Signal(signal))
		out := output()
		assert.Equal(t, 1, c.ProcessState.ExitCode(), out)
		assert.Contains(t, out, "**Stopped early: ")
		assert.Contains(t, out, "delete "+prefix+"-packed-journal\n")
		assert.Empty(t, tables(t, db))
	}
}

func TestCleanDeletesTheTablesOfAKilledRun(t *testing.T) {
	t.Parallel()
	db := dynamotest.New(t)
	c, prefix, output := begin(t, db)
	require.NoError(t, c.Process.Kill())
	_ = output()
	left := tables(t, db)
	require.NotEmpty(t, left)

	refused, err := command(t, db, "clean", "orders").CombinedOutput()
	require.Error(t, err)
	assert.Contains(t, string(refused), awsproof.ErrPrefix.Error())
	assert.Equal(t, left, tables(t, db))

	cleaned, err := command(t, db, "clean", prefix).CombinedOutput()
	require.NoError(t, err, "%s", cleaned)
	for _, table := range left {
		assert.Contains(t, string(cleaned), fmt.Sprintf("delete %s\n", table))
	}
	assert.Empty(t, tables(t, db))
}

func tables(t *testing.T, db *dynamotest.DB) []string {
	t.Helper()
	out, err := db.Client().ListTables(t.Context(), &dynamodb.ListTablesInput{})
	require.NoError(t, err)
	return out.TableNames
}
