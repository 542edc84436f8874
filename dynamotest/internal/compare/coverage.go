package compare

import (
	"fmt"
	"regexp"
	"sort"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
)

// Coverage counts operations and their outcomes.
type Coverage map[string]int

var words = regexp.MustCompile(`(?i)\b(attribute_exists|attribute_not_exists|attribute_type|begins_with|contains|size|if_not_exists|list_append)\(|` +
	`\b(and|or|not|between|in|set|remove|add|delete)\b|<=|>=|<>|[=<>+-]|\[\d+\]|\.`)

// count counts an operation with the reply of one side, which represents both.
func (c Coverage) count(o Operation, r Reply) {
	outcome := "ok"
	if r.Err != nil {
		outcome = r.Code()
		c["message "+pattern(r.Message())]++
	}
	c["operation "+o.Name()+" "+outcome]++
	if len(o.writes()) > 0 {
		c["write "+outcome]++
	}
	if r.Err == nil {
		for _, text := range o.expressions() {
			for _, word := range words.FindAllString(text, -1) {
				if strings.HasPrefix(word, "[") {
					word = "[N]"
				}
				c["expression "+strings.ToUpper(strings.TrimSuffix(word, "("))]++
			}
		}
		c.countPages(o, r)
	}
}

func (c Coverage) countPages(o Operation, r Reply) {
	items, scanned := 0, 0
	for _, out := range r.Outputs {
		switch out := out.(type) {
		case *dynamodb.QueryOutput:
			items, scanned = items+int(out.Count), scanned+int(out.ScannedCount)
		case *dynamodb.ScanOutput:
			items, scanned = items+int(out.Count), scanned+int(out.ScannedCount)
		case *dynamodb.GetItemOutput:
			items = len(out.Item)
		default:
			return
		}
	}
	kind := o.Name()
	switch in := o.Input.(type) {
	case *dynamodb.QueryInput:
		if in.IndexName != nil {
			kind += " of an index"
		}
	case *dynamodb.ScanInput:
		if in.IndexName != nil {
			kind += " of an index"
		}
	}
	switch {
	case items > 0:
		c["read "+kind+" with items"]++
	case scanned > 0:
		c["read "+kind+" with all items filtered"]++
	default:
		c["read "+kind+" of nothing"]++
	}
	if len(r.Outputs) > 1 {
		c["read "+kind+" of several pages"]++
	}
}

// share returns the percentage of the counts with a prefix whose names have the given rest.
func (c Coverage) share(prefix, rest string) int {
	sum := 0
	for name, n := range c {
		if strings.HasPrefix(name, prefix) {
			sum += n
		}
	}
	if sum == 0 {
		return 0
	}
	return 100 * c[prefix+rest] / sum
}

// String returns a line for each count.
func (c Coverage) String() string {
	lines := make([]string, 0, len(c))
	for name, n := range c {
		lines = append(lines, fmt.Sprintf("%s: %d", name, n))
	}
	sort.Strings(lines)
	return strings.Join(lines, "\n")
}
