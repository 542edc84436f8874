package main

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// phase is a part of the check.
type phase struct {
	name, about string
	do          func(ctx context.Context, c *check) error
	// A phase with beside runs no tests. It runs beside the phases after it, until one with alone.
	beside, alone bool
}

// go.work joins these modules.
var modules = []string{".", "cmd/millrace", "examples", "test"}

// In the lists, packages that take long come first.
var (
	others = []string{"./test/cmd/sim", "./test/docs/tutorial", "./test/...", "./cmd/millrace/...", "./..."}

	// Watermill's suite publishes ten thousand messages within a minute, so nothing else may run
	// or be compiled at the same time. Its short form publishes some hundred.
	suite = []string{"./test/suite/..."}

	// The store and the Pub/Sub, and tests that kill processes.
	core = []string{
		"./subscriber", "./test/chaos", "./journal", "./dynamotest/internal/compare", "./repository/...",
		"./journal/internal/...", "./subscriber/...", "./publisher/...",
	}

	// Most of these compare DynamoDB Local with dynamotest.
	onLocal = []string{
		"./dynamotest/internal/compare", "./dynamotest/internal/engine", "./dynamotest/internal/expression",
		"./dynamotest/internal/value", "./internal/dynamolocal/dynamolocaltest", "./test/chaos",
	}

	// The other packages that use a database.
	rest = []string{
		"./examples/lambda", "./examples/orderhistory/story", "./journal/archive", "./test/soak",
		"./cmd/millrace/...", "./process/...", "./examples/...", "./internal/checkpoint", "./internal/tables", "./projection/...",
		"./journal/compress", "./journal/encrypt", "./aggregate/protobuf", "./test/sqlsuite", "./dynamotest/internal/conformance",
	}

	// Their goroutines share the most state. All others run without the race detector, for which
	// each package has to be compiled once more.
	concurrent = []string{
		"./subscriber/...", "./journal", "./repository/...", "./process/...", "./dynamotest",
		"./journal/tail", "./journal/encrypt", "./internal/checkpoint", "./internal/dynamo", "./projection/...", "./publisher/...",
		"./live", "./metrics", "./tracing", ".",
	}
	examples = []string{"./examples/..."}

	// For these any database will do.
	once = []string{
		"./cmd/millrace", "./cmd/millrace/internal/output", "./cmd/millrace/internal/store", "./internal/tables", "./journal/compress",
		"./aggregate/protobuf", "./test/sqlsuite",
	}

	// A browser opens these. They are about pages, and the examples beside them use DynamoDB Local.
	pages = []string{"./examples/console", "./examples/orderhistory", "./examples/planningpoker/web"}

	// These have tests in simulated time, which do not run on DynamoDB Local.
	simulated = []string{
		"./examples/lambda/machine", "./examples/orderhistory/history", "./examples/orderhistory/service", "./examples/planningpoker/view",
	}

	interop = []string{"./test/interop", "./test/peers"}
)

func join(lists ...[]string) (all []string) {
	for _, list := range lists {
		all = append(all, list...)
	}
	return all
}

// On dynamotest many tests wait, so more packages run at a time than there are processors. On
// DynamoDB Local two run at a time: it serves a few hundred to a thousand writes a second, and more
// packages would make each other time out.
var (
	three = []string{"-p=3"}
	two   = []string{"-p=2"}
)

var phases = []phase{
	{name: "prose", about: "the words of comments and docs", do: func(ctx context.Context, c *check) error {
		return c.do(ctx, "", "go", "run", "./test/cmd/prose")
	}},
	{name: "release", about: "fetch, compile, run and install a release as a stranger does", do: func(ctx context.Context, c *check) error {
		if _, err := exec.LookPath("git"); err != nil {
			return missing("it needs git")
		}
		return c.do(ctx, "", "go", "run", "./test/cmd/releasecheck")
	}},
	{name: "suite", about: "Watermill's suite in its short form, on dynamotest, with the race detector", do: tests{
		packages: suite, race: true, args: join(three, []string{"-short"}),
	}.run},
	{name: "dynamotest", about: "packages whose goroutines share the most state, on dynamotest, with the race detector", do: tests{
		packages: concurrent, race: true, args: three,
	}.run},
	// Tests on DynamoDB Local leave much of the processor unused.
	{name: "lint", about: "style, common mistakes and formatting of all modules, by golangci-lint", do: lint, beside: true},
	{name: "local", about: "store and Pub/Sub, on DynamoDB Local", do: tests{
		packages: join(core, onLocal), local: true, instead: onLocal, args: two,
	}.run},
	{name: "rest", about: "all else that uses a database, on DynamoDB Local", do: tests{
		packages: rest, except: pages, local: true, instead: join(examples, once), args: two,
	}.run},
	{name: "suite-all", about: "Watermill's whole suite, on DynamoDB Local", alone: true, do: tests{
		packages: suite, local: true, instead: suite, args: two,
	}.run},
	{name: "others", about: "the other packages, on dynamotest: pages, the documentation, the costs, the command, the simulation", do: tests{
		packages: join(pages, others, simulated), except: join(suite, concurrent, onLocal, once, interop), args: three,
	}.run},
	{name: "outcomes", about: "all outcomes of commits, with stale reads and in storms, of which the race detector sees a part", do: tests{
		packages: []string{"./repository", "./projection"},
		args:     []string{"-run=^(TestExecuteAndTransactionsEndAsTheTableSays|TestPackedStaleReadsChangeNoOutcome|TestRowsAreRightInAStorm|TestRowsOfStatesAreRightInAStorm|TestUnderFaultsACommandIDIsForOneContent)$"},
	}.run},
	{name: "many", about: "100,000 aggregates in the console", do: tests{
		packages: []string{"./console"}, args: []string{"-run=Many", "-console.many=100000"},
	}.run},
	{name: "interop", about: "event-store-adapter-js on the same tables, on DynamoDB Local and Node, and what it and castore cost", do: shareTables},
}

// golangci is the version of golangci-lint.
const golangci = "2.15.0"

func lint(ctx context.Context, c *check) error {
	program := []string{installedLinter(ctx)}
	if program[0] == "" {
		if !c.noskip {
			return missing("it needs golangci-lint " + golangci + "; -noskip compiles it")
		}
		program = []string{"go", "run", "github.com/golangci/golangci-lint/v2/cmd/golangci-lint@v" + golangci}
	}
	if nice, err := exec.LookPath("nice"); err == nil {
		program = append([]string{nice, "-n", "19"}, program...)
	}
	// One run for all modules reads and analyzes what they share once.
	program = append(program, "run", "./...")
	for _, folder := range modules[1:] {
		program = append(program, "./"+folder+"/...")
	}
	c.printf("%s\n", strings.Join(program, " "))
	return c.do(ctx, "", program[0], program[1:]...)
}

// installedLinter returns the path of golangci-lint if it has the right version, or "".
func installedLinter(ctx context.Context) string {
	path, err := output(ctx, "go", "env", "GOPATH")
	if err != nil {
		return ""
	}
	for _, program := range []string{"golangci-lint", filepath.Join(path, "bin", "golangci-lint")} {
		if version, err := output(ctx, program, "version"); err == nil && strings.Contains(version, " "+golangci+" ") {
			return program
		}
	}
	return ""
}

// shareTables fetches event-store-adapter-js and castore by the lock files, from the registry that
// npm is configured for.
func shareTables(ctx context.Context, c *check) error {
	for _, program := range []string{"node", "npm"} {
		if _, err := exec.LookPath(program); err != nil {
			return missing("it needs Node 20 and npm")
		}
	}
	for _, folder := range interop {
		if err := fetchPackages(ctx, c, folder); err != nil {
			return err
		}
	}
	return tests{packages: interop, local: true, env: []string{"MILLRACE_INTEROP=1"}}.run(ctx, c)
}

// fetchPackages fetches what the lock file of a folder names, unless that was done before. Make
// does the same for bench-peers.
func fetchPackages(ctx context.Context, c *check, folder string) error {
	fetched := filepath.Join(folder, "node_modules", ".fetched")
	want, err := os.ReadFile(filepath.Join(folder, "package-lock.json"))
	if err != nil {
		return err
	}
	if got, err := os.ReadFile(fetched); err == nil && bytes.Equal(got, want) {
		return nil
	}
	if err := c.do(ctx, folder, "npm", "ci"); err != nil {
		return missing(err.Error())
	}
	return os.WriteFile(fetched, want, 0o600)
}
