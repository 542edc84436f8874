package command_test

import (
	"os"
	"reflect"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/cmd/millrace/internal/command"
)

func TestThePageOfTheCommandHasEveryField(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../../../docs/command.md")
	require.NoError(t, err)
	var fields func(line reflect.Type)
	fields = func(line reflect.Type) {
		for i := range line.NumField() {
			f := line.Field(i)
			if f.Anonymous {
				fields(f.Type)
				continue
			}
			name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
			assert.Contains(t, string(page), "`"+name+"`", "%s.%s", line, f.Name)
		}
	}
	for _, line := range command.Lines {
		fields(reflect.TypeOf(line))
	}
}

func TestThePageOfTheCommandHasEveryCommand(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../../../docs/command.md")
	require.NoError(t, err)
	_, list, found := strings.Cut(setup(t).ok(t, "--help"), "Available Commands:\n")
	require.True(t, found)
	list, _, _ = strings.Cut(list, "\n\n")
	for _, line := range strings.Split(list, "\n") {
		if name := strings.Fields(line)[0]; name != "help" && name != "completion" {
			assert.Regexp(t, "(?m)^\\| `"+name+"[ `]", string(page))
		}
	}
}
