package cataloguetest_test

import (
	"flag"
	"fmt"
	"path/filepath"
	"reflect"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/catalogue"
	"github.com/millrace-dev/millrace/catalogue/cataloguetest"
)

type (
	one  struct{ A string }
	two  struct{ B int }
	more struct {
		A string
		B int `json:",omitzero"`
	}
)

func messages(payload any) catalogue.Config {
	return catalogue.Config{Channels: []catalogue.Channel{{Name: "public", Messages: []catalogue.Message{{Name: "m", Type: reflect.TypeOf(payload)}}}}}
}

// recorder is a test that records its failures.
type recorder struct {
	testing.TB
	failures []string
	notes    []string
}

func (r *recorder) Helper()      {}
func (r *recorder) Name() string { return "TestEvents/a b" }
func (r *recorder) Errorf(text string, v ...any) {
	r.failures = append(r.failures, fmt.Sprintf(text, v...))
}
func (r *recorder) Fatal(v ...any)             { r.failures = append(r.failures, fmt.Sprint(v...)) }
func (r *recorder) Logf(text string, v ...any) { r.notes = append(r.notes, fmt.Sprintf(text, v...)) }

func check(dir string, c catalogue.Config) []string {
	r := &recorder{}
	cataloguetest.Check(r, dir, c)
	return r.failures
}

// This test changes the flag, so it is not parallel.
func TestCheckSaysWhatToDo(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "events")
	update := func(on string) { require.NoError(t, flag.Set("catalogue.update", on)) }

	const command = "run go test github.com/millrace-dev/millrace/catalogue/cataloguetest -run '^TestEvents/a_b$' -catalogue.update, and commit the files"
	assert.Equal(t, []string{"there is no catalogue in " + dir + ": " + command}, check(dir, messages(one{})))
	update("true")
	assert.Empty(t, check(dir, messages(one{})))
	update("false")
	assert.Empty(t, check(dir, messages(one{})))

	assert.Equal(t, []string{
		"the catalogue in " + dir + " is not up to date, and the changes are compatible: " + command + ": asyncapi.json, channels/public.md, channels/public/m.v1.json",
	}, check(dir, messages(more{})))

	const version = "declare the changed message with Version: 2 (WithVersion(2) of a forward.Mapping).\n"
	subject := `message "m" version 1 of channel "public": `
	want := []string{
		subject + `the field "A" was removed: former messages have it, and consumers that read it find nothing. ` +
			"To fix it, restore the field, accept the change if no program reads it, or " + version +
			subject + `the required field "B" was added: former messages lack it, and are read with its zero value. ` +
			`To fix it, make it optional by a tag if the zero value is right for them (json:"B,omitzero"), or ` + version +
			"To accept the change, for example because nothing of its type was ever stored or sent, delete " +
			filepath.Join(dir, "channels", "public", "m.v1.json") + " and run the test with -catalogue.update.",
	}
	assert.Equal(t, want, check(dir, messages(two{})))
	update("true")
	assert.Equal(t, want, check(dir, messages(two{})), "an update does not write it")
	update("false")
	assert.Empty(t, check(dir, messages(one{})), "no file has changed")

	later := messages(two{})
	later.Channels[0].Messages[0].Version = 2
	update("true")
	assert.Equal(t, []string{
		"the files were written; note: " + subject + "this version was removed: consumers have to read version 2. " +
			"To fix it, check that no consumer reads the former version before you deploy.",
	}, check(dir, later), "go test hides the output of tests that pass")
	assert.Empty(t, check(dir, later))
	update("false")
	assert.Empty(t, check(dir, later))

	assert.Equal(t, []string{"catalogue: Config.Channels[0].Messages[0].Type is nil: pass the Go type, such as reflect.TypeFor[OrderPlaced]()"}, check(dir, messages(nil)))
}
