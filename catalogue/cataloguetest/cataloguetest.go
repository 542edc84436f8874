package cataloguetest

import (
	"errors"
	"flag"
	"path/filepath"
	"regexp"
	"runtime/debug"
	"strings"
	"testing"

	"github.com/millrace-dev/millrace/catalogue"
)

var update = flag.Bool("catalogue.update", false, "write the catalogue that cataloguetest.Check compares, if the changes are compatible")

// Check compares the catalogue of an application with the files in a folder, relative to the
// package of the test. It fails the test if a change is incompatible, and if the files are not up
// to date. The failure says what to do. With the flag -catalogue.update, it writes the files unless
// a change is incompatible, and fails the test once if there are notes, so that they are seen.
func Check(t testing.TB, dir string, config catalogue.Config) {
	t.Helper()
	c, err := catalogue.New(config)
	if err != nil {
		t.Fatal(err)
		return
	}
	d, err := c.Compare(dir)
	if err != nil {
		t.Fatal(err)
		return
	}
	if *update {
		write(t, dir, c)
		return
	}
	command := "go test " + testPackage() + "-run '^" + regexp.QuoteMeta(strings.ReplaceAll(t.Name(), " ", "_")) + "$' -catalogue.update"
	switch {
	case d.Missing:
		t.Errorf("there is no catalogue in %s: run %s, and commit the files", dir, command)
	case len(d.Incompatible) > 0:
		report(t, dir, d.Incompatible)
	case len(d.Stale) > 0:
		t.Errorf("the catalogue in %s is not up to date, and the changes are compatible: run %s, and commit the files: %s",
			dir, command, strings.Join(d.Stale, ", "))
	}
	for _, note := range d.Notes {
		t.Logf("note: %s", note)
	}
}

// testPackage returns the import path of the package that is tested, for a command.
func testPackage() string {
	build, ok := debug.ReadBuildInfo()
	if !ok {
		return ""
	}
	name, isTest := strings.CutSuffix(build.Path, ".test")
	if !isTest {
		return ""
	}
	return name + " "
}

// write fails the test if there are notes: go test does not show the output of a test that passes.
func write(t testing.TB, dir string, c *catalogue.Catalogue) {
	t.Helper()
	notes, err := c.Write(dir)
	var incompatible *catalogue.IncompatibleError
	switch {
	case errors.As(err, &incompatible):
		report(t, dir, incompatible.Changes)
	case err != nil:
		t.Fatal(err)
	}
	for _, note := range notes {
		t.Errorf("the files were written; note: %s", note)
	}
}

// report fails the test once for each file.
func report(t testing.TB, dir string, changes []catalogue.Change) {
	t.Helper()
	for len(changes) > 0 {
		file, text := changes[0].File, ""
		for len(changes) > 0 && changes[0].File == file {
			text += changes[0].String() + "\n"
			changes = changes[1:]
		}
		t.Errorf("%sTo accept the change, for example because nothing of its type was ever stored or sent, delete %s and run the test with -catalogue.update.",
			text, filepath.Join(dir, filepath.FromSlash(file)))
	}
}
