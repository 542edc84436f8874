package command_test

import (
	"encoding/json"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"

	"github.com/millrace-dev/millrace/cmd/millrace/internal/command"
	"github.com/millrace-dev/millrace/internal/permissions"
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

// generated are the documents of the page, each after a comment with the command that prints it.
var generated = regexp.MustCompile("(?s)<!-- millrace ([^>]+) -->\n```[a-z]+\n(.*?)```\n")

func TestThePageOfInfrastructureHasWhatTheCommandPrints(t *testing.T) {
	t.Parallel()
	page := readPage(t, "operations/infrastructure.md")
	documents := generated.FindAllStringSubmatch(page, -1)
	require.NotEmpty(t, documents)
	for _, document := range documents {
		assert.Equal(t, setup(t).ok(t, strings.Fields(document[1])...), document[2], "millrace %s", document[1])
	}
}

func TestThePageOfInfrastructureHasEveryRoleAndFlag(t *testing.T) {
	t.Parallel()
	page := readPage(t, "operations/infrastructure.md")
	for _, role := range permissions.Roles {
		assert.Contains(t, page, "\n| `"+role.Name+"` | "+role.Does+" |\n")
	}
	help := setup(t).ok(t, "schema", "--help")
	_, flags, found := strings.Cut(help, "\nFlags:\n")
	require.True(t, found)
	flags, _, _ = strings.Cut(flags, "\n\n")
	for _, flag := range regexp.MustCompile(`--[a-z-]+`).FindAllString(flags, -1) {
		if flag != "--help" {
			assert.Contains(t, page, "`"+flag+"`")
		}
	}
}

func readPage(t *testing.T, name string) string {
	t.Helper()
	page, err := os.ReadFile("../../../../docs/" + name)
	require.NoError(t, err)
	return string(page)
}

func TestCommandLinesOfThePagesAreUnderstood(t *testing.T) {
	t.Parallel()
	found := 0
	for _, block := range blocks(t) {
		if block.language != "" && block.language != "bash" {
			continue
		}
		for _, line := range strings.Split(strings.ReplaceAll(block.text, "\\\n", " "), "\n") {
			if args, ok := commandLine(line); ok {
				found++
				assert.NoError(t, command.Understands(args...), "%s: %s", block.page, line)
			}
		}
	}
	assert.Greater(t, found, 80)
}

func TestDocumentsOfThePagesAreValid(t *testing.T) {
	t.Parallel()
	found := map[string]int{}
	for _, block := range blocks(t) {
		var err error
		switch block.language {
		case "hcl":
			if _, problems := hclsyntax.ParseConfig([]byte(block.text), "page.tf", hcl.InitialPos); problems.HasErrors() {
				err = problems
			}
		case "json":
			err = json.Unmarshal([]byte(block.text), new(any))
		case "yaml":
			err = yaml.Unmarshal([]byte(block.text), new(any))
		default:
			continue
		}
		found[block.language]++
		assert.NoError(t, err, "%s:\n%s", block.page, block.text)
	}
	assert.NotEmpty(t, found)
}

// A block is code on a page.
type block struct{ page, language, text string }

// blocks returns the code of all pages of the documentation.
func blocks(t *testing.T) (found []block) {
	t.Helper()
	fence := regexp.MustCompile("(?ms)^ *```([a-z]*)$\n(.*?)^ *```$")
	require.NoError(t, filepath.WalkDir("../../../../docs", func(name string, _ fs.DirEntry, err error) error {
		if err != nil || filepath.Ext(name) != ".md" {
			return err
		}
		page, err := os.ReadFile(name)
		for _, match := range fence.FindAllStringSubmatch(string(page), -1) {
			found = append(found, block{filepath.Base(name), match[1], match[2]})
		}
		return err
	}))
	return found
}

func TestAWrongCommandLineIsNoticed(t *testing.T) {
	t.Parallel()
	args, ok := commandLine(`     millrace group parked "a b" order --reason "no carrier" | head  # some of them`)
	require.True(t, ok)
	require.Equal(t, []string{"group", "parked", "a b", "order", "--reason", "no carrier"}, args)
	require.NoError(t, command.Understands(args...))
	for _, wrong := range []string{"group paused a order", "group parked a", "group parked a order --reasons b", "nothing"} {
		require.Error(t, command.Understands(strings.Fields(wrong)...), wrong)
	}
}

var shellWord = regexp.MustCompile(`"[^"]*"|[^\s"]+`)

// commandLine returns the arguments of the command in a line of the shell. $NEW stands for flags.
func commandLine(line string) (args []string, ok bool) {
	line, ok = strings.CutPrefix(strings.TrimSpace(line), "millrace ")
	for _, word := range shellWord.FindAllString(line, -1) {
		if strings.ContainsAny(word[:1], "#|<>") {
			break
		}
		if word != "$NEW" {
			args = append(args, strings.Trim(word, `"`))
		}
	}
	return args, ok
}
