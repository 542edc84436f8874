package console_test

import (
	"os"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/console"
)

var inBackticks = regexp.MustCompile("`([a-z0-9_]+)`")

func TestThePageOfJSONHasTheFieldsOfEachDocument(t *testing.T) {
	t.Parallel()
	rows := documented(t)
	for name, view := range console.Views {
		cells, ok := rows[name]
		if !assert.True(t, ok, "docs/reference/console-json.md must have a row for %s", name) {
			continue
		}
		delete(rows, name)
		var listed []string
		for _, match := range inBackticks.FindAllStringSubmatch(cells, -1) {
			listed = append(listed, match[1])
		}
		own, base := fieldsOf(reflect.TypeOf(view))
		assert.ElementsMatch(t, own, listed, "fields of %s", name)
		for _, other := range base {
			assert.Regexp(t, "^the fields of "+other+"[,;]", strings.TrimSpace(cells), "fields of %s", name)
		}
	}
	assert.Empty(t, rows, "rows of docs/reference/console-json.md that are no documents and no parts")
}

func TestThePageOfJSONHasEachDocument(t *testing.T) {
	t.Parallel()
	for _, name := range console.Pages() {
		assert.Contains(t, console.Views, "`api/"+name+"`")
	}
}

func TestThePageOfJSONHasEachKindOfConcern(t *testing.T) {
	t.Parallel()
	var listed []string
	for _, match := range regexp.MustCompile(`"([a-z_]+)"`).FindAllStringSubmatch(documented(t)["concern"], -1) {
		listed = append(listed, match[1])
	}
	assert.ElementsMatch(t, console.Kinds(), listed)
}

// documented returns the column of fields of the tables of documents and parts, by the first
// column.
func documented(t *testing.T) map[string]string {
	t.Helper()
	page, err := os.ReadFile("../docs/reference/console-json.md")
	require.NoError(t, err)
	_, section, found := strings.Cut(string(page), "\n## Documents\n")
	require.True(t, found)
	section, _, found = strings.Cut(section, "\n## Live tail\n")
	require.True(t, found)
	rows := map[string]string{}
	for line := range strings.Lines(section) {
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), " | ")
		if !strings.HasPrefix(line, "| ") || strings.HasPrefix(line, "| document ") || strings.HasPrefix(line, "| part ") {
			continue
		}
		rows[strings.TrimSpace(cells[0])] = cells[len(cells)-1]
	}
	return rows
}

// fieldsOf returns the JSON names of a struct's own fields, and the parts that it embeds.
func fieldsOf(view reflect.Type) (own, base []string) {
	for i := range view.NumField() {
		f := view.Field(i)
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case f.Anonymous:
			for part, other := range console.Views {
				if reflect.TypeOf(other) == f.Type {
					base = append(base, part)
				}
			}
		case name != "" && name != "-":
			own = append(own, name)
		}
	}
	return own, base
}
