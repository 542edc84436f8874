package aggregate_test

import (
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"path"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// domain declares the types that the snippets below use.
const domain = `
	type account struct{ balance int }

	type deposited struct{ amount int }
	func (deposited) EventType() string  { return "account.deposited.v1" }
	func (e deposited) Apply(a *account) { a.balance += e.amount }

	type order struct{ placed bool }

	type placed struct{}
	func (placed) EventType() string { return "order.placed.v1" }
	func (placed) Apply(o *order)    { o.placed = true }
`

func TestEventOfAnotherAggregateDoesNotCompile(t *testing.T) {
	t.Parallel()

	tests := map[string]struct{ right, wrong string }{
		"in a definition": {
			right: `var accounts = Define[account]("account", deposited{})`,
			wrong: `var accounts = Define[account]("account", deposited{}, placed{})`,
		},
		"in a decision": {
			right: `var deposit Decision[account] = func(account) (Events[account], error) { return Events[account]{deposited{1}}, nil }`,
			wrong: `var deposit Decision[account] = func(account) (Events[account], error) { return Events[account]{placed{}}, nil }`,
		},
		"in Apply": {
			right: `func apply(d Definition[account], a *account) { d.Apply(a, deposited{1}) }`,
			wrong: `func apply(d Definition[account], a *account) { d.Apply(a, placed{}) }`,
		},
		"in Encode": {
			right: `func encode(d Definition[account]) { _, _ = d.Encode(deposited{1}) }`,
			wrong: `func encode(d Definition[account]) { _, _ = d.Encode(placed{}) }`,
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			assert.Empty(t, typeErrors(t, domain+test.right))
			faults := typeErrors(t, domain+test.wrong)
			require.Len(t, faults, 1)
			assert.ErrorContains(t, faults[0], "placed does not implement Event[account] (wrong type for method Apply)")
		})
	}
}

// typeErrors checks a snippet as a file of package aggregate and returns the type errors of that
// file. It does not load the packages that the package imports, so other files have errors too; it
// ignores those.
func typeErrors(t *testing.T, snippet string) []error {
	t.Helper()

	set := token.NewFileSet()
	var files []*ast.File
	for _, name := range []string{"event.go", "codec.go", "id.go", "definition.go", "upcaster.go", "evolution.go"} {
		file, err := parser.ParseFile(set, name, nil, parser.SkipObjectResolution)
		require.NoError(t, err)
		files = append(files, file)
	}
	file, err := parser.ParseFile(set, "snippet.go", "package aggregate\n"+snippet, parser.SkipObjectResolution)
	require.NoError(t, err)

	var faults []error
	config := types.Config{
		Importer: emptyImporter{},
		Error: func(err error) {
			var fault types.Error
			if errors.As(err, &fault) && set.Position(fault.Pos).Filename == "snippet.go" {
				faults = append(faults, err)
			}
		},
	}
	_, _ = config.Check("aggregate", set, append(files, file), nil)
	return faults
}

type emptyImporter struct{}

func (emptyImporter) Import(name string) (*types.Package, error) {
	imported := types.NewPackage(name, path.Base(name))
	imported.MarkComplete()
	return imported, nil
}
