package scaffold_test

import (
	"bufio"
	"context"
	"fmt"
	"go/format"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/cmd/millrace/internal/scaffold"
	"github.com/millrace-dev/millrace/dynamotest"
)

const clone = "../../../.." // from this folder

func write(t *testing.T, target string) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "ticket-shop")
	_, files, err := scaffold.Write(scaffold.Service{Name: "ticket-shop", Dir: dir, Target: target, Replace: clone})
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, file := range files {
		text, err := os.ReadFile(filepath.Join(dir, file))
		require.NoError(t, err)
		assert.NotContains(t, string(text), "scaffold", file)
		assert.NotContains(t, string(text), "millrace-template", file)
		if strings.HasSuffix(file, ".go") {
			formatted, err := format.Source(text)
			require.NoError(t, err, file)
			assert.Equal(t, string(formatted), string(text), file)
		}
	}
	left, err := os.ReadDir(filepath.Dir(dir))
	require.NoError(t, err)
	assert.Len(t, left, 1, "nothing else is left")
	return dir
}

// goTool runs go in a folder outside of the workspace.
func goTool(t *testing.T, dir string, args ...string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", args...)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), "GOWORK=off", "GOFLAGS=")
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "go %v: %s", args, out)
}

// The targets are built one after the other: together they would take as long.
func TestAWrittenServiceWorks(t *testing.T) {
	t.Parallel()
	for _, target := range scaffold.Targets {
		dir := write(t, target)
		goTool(t, dir, "mod", "tidy")
		goTool(t, dir, "vet", "./...")
		goTool(t, dir, "test", "./...")
		goTool(t, dir, "build", "-o", "ticket-shop", ".")
		serve(t, dir, nil, placesAnOrder(t))
		switch target {
		case "fargate":
			worksOnAWS(t, dir)
		case "lambda":
			worksOnLambda(t, dir)
		}
	}
}

// placesAnOrder returns a check of a service at a URL.
func placesAnOrder(t *testing.T) func(url string) {
	t.Helper()
	return func(url string) {
		status, token, reply := send(t, http.MethodPut, url+"/orders/1", `{"customer": "ada", "amount": 4200}`, "")
		require.Equal(t, http.StatusCreated, status, reply)
		status, _, reply = send(t, http.MethodGet, url+"/orders/1", "", token)
		require.Equal(t, http.StatusOK, status, reply)
		assert.JSONEq(t, `{"order": "1", "customer": "ada", "amount": 4200, "status": "pending"}`, reply)
	}
}

// worksOnAWS checks the deployment job and the container's command.
func worksOnAWS(t *testing.T, dir string) {
	t.Helper()
	database := httptest.NewServer(dynamotest.New(t).Handler())
	t.Cleanup(database.Close)
	createTables(t, dir, database.URL, "-aws", "-create-tables")
	serve(t, dir, onDatabase(database.URL), func(url string) {
		placesAnOrder(t)(url)
		status, _, _ := send(t, http.MethodGet, url+"/readyz", "", "")
		assert.Equal(t, http.StatusOK, status)
	}, "-aws")
}

func createTables(t *testing.T, dir, endpoint string, args ...string) {
	t.Helper()
	create := exec.CommandContext(t.Context(), filepath.Join(dir, "ticket-shop"), args...)
	create.Env = onDatabase(endpoint)
	out, err := create.CombinedOutput()
	require.NoError(t, err, "%s", out)
}

// serve runs the service in a folder as its README says, until use returns.
func serve(t *testing.T, dir string, env []string, use func(url string), args ...string) {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	cmd := exec.CommandContext(ctx, filepath.Join(dir, "ticket-shop"), append([]string{"-http", "127.0.0.1:0"}, args...)...)
	cmd.Env = env
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	line, err := bufio.NewReader(out).ReadString('\n')
	require.NoError(t, err)
	var url string
	_, err = fmt.Sscanf(line, "serving on %s", &url)
	require.NoError(t, err)
	use(url)
	stop()
	_ = cmd.Wait() // it reports that ctx has ended
	assert.Zero(t, cmd.ProcessState.ExitCode(), "it stops in order")
}

// send sends a request until the status is not 503: the service may start, or a view may be late.
func send(t *testing.T, method, url, body, token string) (status int, newToken, reply string) {
	t.Helper()
	require.Eventually(t, func() bool {
		r, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
		require.NoError(t, err)
		r.Header.Set("Consistency-Token", token)
		r.Header.Set("Idempotency-Key", "1")
		response, err := http.DefaultClient.Do(r)
		require.NoError(t, err)
		defer func() { _ = response.Body.Close() }()
		text, err := io.ReadAll(response.Body)
		require.NoError(t, err)
		status, newToken, reply = response.StatusCode, response.Header.Get("Consistency-Token"), string(text)
		return status != http.StatusServiceUnavailable
	}, time.Minute, 10*time.Millisecond)
	return status, newToken, reply
}

func TestATargetHasItsOwnFiles(t *testing.T) {
	t.Parallel()
	for target, own := range map[string]map[string]string{
		"fargate": {"Dockerfile": "FROM ", "README.md": "Deploy it on Fargate", ".github/workflows/ci.yml": "docker build -t ticket-shop", ".gitignore": "/ticket-shop"},
		"lambda":  {"main.go": "lambdaurl.Start", "README.md": "--lambda ticket-shop", ".github/workflows/ci.yml": "bootstrap.zip", "go.mod": "aws-lambda-go"},
	} {
		dir := write(t, target)
		for file, want := range own {
			text, err := os.ReadFile(filepath.Join(dir, file))
			require.NoError(t, err)
			assert.Contains(t, string(text), want, file)
		}
		_, err := os.Stat(filepath.Join(dir, "Dockerfile"))
		assert.Equal(t, target == "fargate", err == nil)
	}
}

func TestAServiceIsOnlyWrittenWhereNothingIs(t *testing.T) {
	t.Parallel()
	parent := t.TempDir()
	full, file, empty := filepath.Join(parent, "full"), filepath.Join(parent, "file"), filepath.Join(parent, "empty")
	require.NoError(t, os.MkdirAll(filepath.Join(full, "inner"), 0o700))
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	require.NoError(t, os.Mkdir(empty, 0o700))
	for dir, want := range map[string]string{full: "is not empty", file: "is a file", filepath.Join(file, "x"): "not a directory"} {
		_, _, err := scaffold.Write(scaffold.Service{Name: "shop", Dir: dir, Target: "lambda", Replace: clone})
		assert.ErrorContains(t, err, want)
	}
	left, err := os.ReadDir(full)
	require.NoError(t, err)
	assert.Len(t, left, 1)
	for _, dir := range []string{empty, filepath.Join(parent, "a", "b")} {
		_, files, err := scaffold.Write(scaffold.Service{Name: "shop", Dir: dir, Target: "lambda", Replace: clone})
		require.NoError(t, err)
		for _, file := range files {
			assert.FileExists(t, filepath.Join(dir, file))
		}
	}
}

func TestNamesThatCannotWorkAreRefused(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"", "x", "Shop", "9shop", "shop-", "-shop", "a--b", "a_b", "a/b", "..", "vendor", "internal", "läden", "con", "all", strings.Repeat("x", 41)} {
		_, _, err := scaffold.Write(scaffold.Service{Name: name, Dir: filepath.Join(t.TempDir(), "x"), Target: "fargate", Version: "v1.0.0"})
		assert.ErrorAs(t, err, new(*scaffold.InvalidError), name)
	}
	for _, module := range []string{"/a", "a/", "a//b", "a b", "Ex.com/a", "a/../b", "std", "a/vendor/b", "ex.com/aux", "ex.com/a.", "ex.com/-a", "ex.com/a~1", scaffold.Library, scaffold.Library + "/shop"} {
		_, _, err := scaffold.Write(scaffold.Service{Name: "shop", Module: module, Dir: filepath.Join(t.TempDir(), "x"), Target: "fargate", Version: "v1.0.0"})
		assert.ErrorAs(t, err, new(*scaffold.InvalidError), module)
	}
}

func TestAServiceRequiresAReleaseOrAClone(t *testing.T) {
	t.Parallel()
	goMod := func(s scaffold.Service) string {
		s.Name, s.Target, s.Dir = "shop", "fargate", filepath.Join(t.TempDir(), "shop")
		_, _, err := scaffold.Write(s)
		if err != nil {
			return err.Error()
		}
		text, err := os.ReadFile(filepath.Join(s.Dir, "go.mod"))
		require.NoError(t, err)
		return string(text)
	}
	release := goMod(scaffold.Service{Version: "v1.2.3"})
	assert.Contains(t, release, scaffold.Library+" v1.2.3\n")
	assert.NotContains(t, release, "replace")
	assert.Regexp(t, `replace `+scaffold.Library+` => (\.\./)+`, goMod(scaffold.Service{Version: "v1.2.3", Replace: clone}))
	assert.Contains(t, goMod(scaffold.Service{}), "has no version")
	assert.Contains(t, goMod(scaffold.Service{Replace: "template"}), "is not a clone")
}

func TestTheFoldersOfAServiceMayHaveAnyName(t *testing.T) {
	t.Parallel()
	parent := t.TempDir()
	library := filepath.Join(parent, "my clone (2)")
	require.NoError(t, os.Mkdir(library, 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(library, "go.mod"), []byte("module "+scaffold.Library+"\n"), 0o600))
	dir := filepath.Join(parent, "a shop")
	_, _, err := scaffold.Write(scaffold.Service{Name: "shop", Target: "fargate", Dir: parent + "/missing/../a shop", Replace: library})
	require.NoError(t, err)
	goTool(t, dir, "mod", "edit", "-json")
}

// A later version of the SDK's modules than Millrace requires would change other modules, too.
func TestAServiceHasTheVersionsOfThisRepository(t *testing.T) {
	t.Parallel()
	own, err := os.ReadFile("../../go.mod")
	require.NoError(t, err)
	text, err := os.ReadFile(filepath.Join(write(t, "lambda"), "go.mod"))
	require.NoError(t, err)
	required := regexp.MustCompile(`(?m)^\t(\S+ v\S+)$`).FindAllStringSubmatch(string(text), -1)
	require.Len(t, required, 3)
	for _, module := range required {
		assert.Contains(t, string(own), "\t"+module[1]+"\n")
	}
}
