package docs

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"
)

const forms = "../.github/ISSUE_TEMPLATE"

// GitHub shows no form that it cannot read, and says nothing about it.
func TestTheFormsOfIssuesAreValid(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob(forms + "/*.yml")
	require.NoError(t, err)
	names := 0
	for _, file := range files {
		if filepath.Base(file) == "config.yml" {
			continue
		}
		var form struct {
			Name, Description string
			Body              []struct {
				Type, ID   string
				Attributes struct {
					Label, Value string
					Options      []string
				}
			}
		}
		require.NoError(t, yaml.Unmarshal([]byte(read(t, file)), &form), file)
		assert.NotEmpty(t, form.Description, file)
		assert.Contains(t, read(t, "../SUPPORT.md"), "form "+form.Name, file)
		ids := map[string]bool{}
		for _, field := range form.Body {
			assert.Contains(t, []string{"markdown", "textarea", "input", "dropdown"}, field.Type, file)
			if field.Type == "markdown" {
				assert.NotEmpty(t, field.Attributes.Value, file)
				continue
			}
			assert.NotEmpty(t, field.Attributes.Label, file)
			assert.False(t, field.ID == "" || ids[field.ID], "%s: %q needs an id of its own", file, field.Attributes.Label)
			assert.Equal(t, field.Type == "dropdown", len(field.Attributes.Options) > 0, file)
			ids[field.ID] = true
		}
		names++
	}
	assert.Equal(t, 3, names)
}

func TestTheLinksBesideTheFormsLeadSomewhere(t *testing.T) {
	t.Parallel()
	var config struct {
		Links []struct{ URL string } `yaml:"contact_links"`
	}
	require.NoError(t, yaml.Unmarshal([]byte(read(t, forms+"/config.yml")), &config))
	require.NotEmpty(t, config.Links)
	for _, link := range config.Links {
		if _, file, ok := strings.Cut(link.URL, "/blob/main/"); ok {
			_, err := os.Stat("../" + file)
			assert.NoError(t, err)
		}
	}
}
