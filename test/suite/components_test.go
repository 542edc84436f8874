package suite_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Watermill tests its components with its own GoChannel. Here the same tests run with our publisher
// and subscriber in its place, see testdata/pubsub.go. The tests are copied from the module cache
// when they run.

// ownTests are the tests of GoChannel itself: its fields, and Watermill's universal suite, which
// this package runs in its own way.
var ownTests = []string{"pubsub_test.go", "pubsub_internal_test.go", "pubsub_bench_test.go", "pubsub_stress_test.go"}

// failsAfter is a time limit after which a test fails.
var failsAfter = regexp.MustCompile(`time\.After\([^\n]*\):(\n.*(Fatal|Fail|Error)\()`)

// topLevel is the beginning of a test.
var topLevel = regexp.MustCompile(`(?m)^func (Test\w+)\(`)

// readsFor is a time limit of a read that must return all messages.
var readsFor = regexp.MustCompile(`(BulkRead\([^\n]*), time\.Second(\*10)?\)`)

// corrections are old and new text by file. Most are other time limits that would be too short for
// a busy machine. The reader of router_test.go acks each message that it reads. It must not ack a
// message before the handler nacks it, and the handler must not nack twice.
var corrections = map[string][]string{
	"components/delay/publisher_test.go":     {"delayedUntil, 1*time.Second", "delayedUntil, time.Minute"},
	"components/fanin/fanin_test.go":         {"cancelAfter = time.Millisecond * 100", "cancelAfter = 5 * time.Second"},
	"components/forwarder/forwarder_test.go": {"time.Second*5", "time.Minute"},
	"message/router_test.go": {
		"messageReceived <- msg\n\n\t\t\tif !internal", "messageReceived <- msg.Copy()\n\n\t\t\tif !internal",
		"msg.Nack()\n\t\t\t\tclose(nackSend)", "close(nackSend)\n\t\t\t\tmsg.Nack()",
		"3*time.Second, 5*time.Millisecond", "time.Minute, 5*time.Millisecond", "1*time.Second,\n\t\t1*time.Millisecond", "time.Minute, time.Millisecond",
	},
	"message/router/middleware/deduplicator_test.go": {"time.Millisecond*50", "5*time.Second", "wait := time.Millisecond * 5", "wait := 2 * time.Second"},
	"pubsub/gochannel/fanout_test.go": {
		"context.Background(), time.Second)", "context.Background(), time.Minute)",
		"<-ctx.Done()\n\n\tcounter", "for len(receivedMessages) < expectedNumberOfMessages && ctx.Err() == nil {\n\t\ttime.Sleep(time.Millisecond)\n\t}\n\tcancel()\n\n\tcounter",
	},
}

func TestWatermillsComponentsWorkWithOurPubSub(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("compiles Watermill and the library")
	}
	folder := copyWatermill(t)
	packages, tests := usersOfGoChannel(t, folder)
	require.Subset(t, packages, []string{
		"components/cqrs", "components/delay", "components/fanin", "components/forwarder", "components/requeuer", "components/requestreply",
		"message", "message/router/middleware", "pubsub/gochannel",
	})
	require.Greater(t, len(tests), 50)
	results, stderr := runTests(t, folder, packages, tests)
	for _, name := range packages {
		assert.Equal(t, "pass", results[name].result, "%s\n%s%s", name, results[name].output, stderr)
	}
	for test, r := range results {
		if r.result == "fail" {
			t.Errorf("%s fails:\n%s", test, r.output)
		}
	}
}

type result struct{ result, output string }

// runTests returns the results of packages and of tests, by the name of the package and the test.
func runTests(t *testing.T, folder string, packages, tests []string) (results map[string]result, stderr string) {
	t.Helper()
	args := []string{"test", "-json", "-vet=off", "-timeout=5m", "-run=^(" + strings.Join(tests, "|") + ")$"}
	for _, name := range packages {
		args = append(args, "./"+name)
	}
	run := exec.CommandContext(t.Context(), "go", args...)
	run.Dir, run.Env = folder, append(os.Environ(), "GOWORK="+filepath.Join(filepath.Dir(folder), "go.work"))
	var complaints bytes.Buffer
	run.Stderr = &complaints
	output, err := run.Output()
	if !errors.As(err, new(*exec.ExitError)) {
		require.NoError(t, err)
	}
	results = map[string]result{}
	for decoder := json.NewDecoder(bytes.NewReader(output)); ; {
		var event struct{ Action, Package, Test, Output string }
		if err := decoder.Decode(&event); errors.Is(err, io.EOF) {
			return results, complaints.String()
		} else if err != nil {
			require.NoError(t, err, "%s", output)
		}
		name := strings.TrimSpace(strings.TrimPrefix(event.Package, "github.com/ThreeDotsLabs/watermill/") + " " + event.Test)
		r := results[name]
		switch event.Action {
		case "output":
			r.output += event.Output
		case "pass", "fail", "skip":
			r.result = event.Action
		}
		results[name] = r
	}
}

// copyWatermill copies Watermill's module into a workspace with this library, and returns its
// folder.
func copyWatermill(t *testing.T) string {
	t.Helper()
	list := exec.CommandContext(t.Context(), "go", "list", "-m", "-f", "{{.Dir}}", "github.com/ThreeDotsLabs/watermill")
	source, err := list.Output()
	require.NoError(t, err)
	library, err := filepath.Abs("../..")
	require.NoError(t, err)
	workspace := t.TempDir()
	folder := filepath.Join(workspace, "watermill")
	require.NoError(t, os.CopyFS(folder, os.DirFS(strings.TrimSpace(string(source)))))
	require.NoError(t, os.WriteFile(filepath.Join(workspace, "go.work"), fmt.Appendf(nil, "go 1.24\n\nuse (\n\t%q\n\t%q\n)\n", library, folder), 0o600))

	ours, err := os.ReadFile("testdata/pubsub.go")
	require.NoError(t, err)
	goChannel := filepath.Join(folder, "pubsub", "gochannel")
	for _, name := range ownTests {
		require.NoError(t, os.Remove(filepath.Join(goChannel, name)))
	}
	require.NoError(t, os.Remove(filepath.Join(goChannel, "pubsub.go")))
	require.NoError(t, os.WriteFile(filepath.Join(goChannel, "pubsub.go"), ours, 0o600))
	return folder
}

// usersOfGoChannel returns the packages whose tests use a GoChannel, and the tests of those files.
// It corrects the tests.
func usersOfGoChannel(t *testing.T, folder string) (packages, tests []string) {
	t.Helper()
	corrected := 0
	require.NoError(t, filepath.WalkDir(folder, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, "_test.go") || strings.Contains(path, "_examples") {
			return err
		}
		text, err := os.ReadFile(path)
		if err != nil || !bytes.Contains(text, []byte(`watermill/pubsub/gochannel"`)) {
			return err
		}
		name, err := filepath.Rel(folder, path)
		require.NoError(t, err)
		if p := filepath.ToSlash(filepath.Dir(name)); !slices.Contains(packages, p) {
			packages = append(packages, p)
		}
		for _, test := range topLevel.FindAllSubmatch(text, -1) {
			tests = append(tests, string(test[1]))
		}
		text = failsAfter.ReplaceAll(text, []byte("time.After(time.Minute):$1"))
		text = readsFor.ReplaceAll(text, []byte("$1, time.Minute)"))
		for change := range slices.Chunk(corrections[filepath.ToSlash(name)], 2) {
			require.Equal(t, 1, bytes.Count(text, []byte(change[0])), "%s: %s", name, change[0])
			text = bytes.ReplaceAll(text, []byte(change[0]), []byte(change[1]))
			corrected++
		}
		require.NoError(t, os.Remove(path)) // it is read-only
		return os.WriteFile(path, text, 0o600)
	}))
	require.Equal(t, 11, corrected, "each of the texts occurs once")
	return packages, tests
}
