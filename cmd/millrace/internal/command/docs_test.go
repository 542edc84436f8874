package command_test

import (
	"os"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/cmd/millrace/internal/command"
)

func TestThePageOfTheCommandHasEveryField(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../../../docs/reference/command.md")
	require.NoError(t, err)
	var words []string
	for _, span := range regexp.MustCompile("`[a-z0-9_]+`").FindAllString(string(page), -1) {
		words = append(words, strings.Trim(span, "`"))
	}
	var fields func(line reflect.Type)
	fields = func(line reflect.Type) {
		for i := range line.NumField() {
			f := line.Field(i)
			switch {
			case f.Anonymous && f.Type.Kind() == reflect.Pointer:
				continue // it is in the list of lines
			case f.Anonymous:
				fields(f.Type)
				continue
			}
			name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
			assert.Contains(t, words, name, "of %s", line)
		}
	}
	for _, line := range command.Lines {
		fields(reflect.TypeOf(line))
	}
}

func TestThePageOfTheCommandHasEveryCommand(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../../../docs/reference/command.md")
	require.NoError(t, err)
	s := setup(t)
	names := commandsOf(t, s.ok(t, "--help"), "")
	for _, parent := range []string{"group", "model", "process", "topic"} {
		names = append(names, commandsOf(t, s.ok(t, parent, "--help"), parent+" ")...)
	}
	for _, name := range names {
		if name != "help" && name != "completion" && name != "group" && name != "topic" {
			listed := regexp.MustCompile("(?m)^\\| `" + name + "[ `]").Match(page)
			assert.True(t, listed, "the page must list %s", name)
		}
	}
}

// commandsOf returns the names of the commands in a help text.
func commandsOf(t *testing.T, help, parent string) (names []string) {
	t.Helper()
	_, list, found := strings.Cut(help, "Available Commands:\n")
	require.True(t, found)
	list, _, _ = strings.Cut(list, "\n\n")
	for _, line := range strings.Split(list, "\n") {
		names = append(names, parent+strings.Fields(line)[0])
	}
	return names
}
