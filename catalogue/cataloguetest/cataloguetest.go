package cataloguetest

import (
	"errors"
	"flag"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/millrace-dev/millrace/catalogue"
)

var update = flag.Bool("catalogue.update", false, "write the catalogue that cataloguetest.Check compares, if the changes are compatible")

// Check compares the catalogue of an application with the files in a folder, relative to the
// package of the test. It fails the test if a change is incompatible, and if the files are not up
// to date. The failure says what to do.
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
	for _, note := range d.Notes {
		t.Logf("note: %s", note)
	}
	if *update {
		write(t, dir, c)
		return
	}
	command := "go test -run '^" + regexp.QuoteMeta(strings.ReplaceAll(t.Name(), " ", "_")) + "$' -catalogue.update"
	switch {
	case d.Missing:
		t.Errorf("there is no catalogue in %s: run %s, and commit the files", dir, command)
	case len(d.Incompatible) > 0:
		report(t, dir, d.Incompatible)
	case len(d.Stale) > 0:
		t.Errorf("the catalogue in %s is not up to date, and the changes are compatible: run %s, and commit the files: %s",
			dir, command, strings.Join(d.Stale, ", "))
	}
}

func write(t testing.TB, dir string, c *catalogue.Catalogue) {
	t.Helper()
	err := c.Write(dir)
	var incompatible *catalogue.IncompatibleError
	switch {
	case errors.As(err, &incompatible):
		report(t, dir, incompatible.Changes)
	case err != nil:
		t.Fatal(err)
	}
}

func report(t testing.TB, dir string, changes []catalogue.Change) {
	t.Helper()
	for _, change := range changes {
		t.Errorf("%s\nTo accept the change, for example because nothing of its type was ever stored or sent, delete %s and run the test with -catalogue.update.",
			change, filepath.Join(dir, filepath.FromSlash(change.File)))
	}
}
