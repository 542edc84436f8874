package catalogue

import (
	"path"
	"regexp"
	"slices"
	"strings"
)

var schemaLink = regexp.MustCompile(`\[[Ss]chema\]\(([^)]*\.json)\)`)

// lost notes schemas to which the committed pages link and that are missing. Such an event type is
// compared with nothing.
func (c *check) lost(before map[string][]byte) {
	for _, page := range sortedKeys(before) {
		name, isPage := strings.CutSuffix(page, ".md")
		if !isPage || page == indexFile {
			continue
		}
		var missing []string
		for _, match := range schemaLink.FindAllSubmatch(before[page], -1) {
			file := path.Join(path.Dir(page), linked.Replace(string(match[1])))
			if strings.HasPrefix(file, name+"/") && before[file] == nil && !slices.Contains(missing, file) {
				missing = append(missing, file)
			}
		}
		if len(missing) == 0 {
			continue
		}
		c.difference.Notes = append(c.difference.Notes, Change{
			Subject: "page " + page, File: page,
			What: "it links to files that are missing: " + strings.Join(missing, ", "),
			Why:  "what they describe is compared with nothing, so all its changes count as accepted",
			Fix:  "restore them from version control, unless they were deleted to accept changes",
		})
	}
}

// linked reverts what target does.
var linked = strings.NewReplacer("%28", "(", "%29", ")", "%25", "%")
