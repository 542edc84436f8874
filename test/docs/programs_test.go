package docs

import (
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/millrace-dev/millrace/internal/permissions"
	"github.com/millrace-dev/millrace/journal"
)

// columns are the columns of the page's tables. The last one has several tables.
var columns = [][]permissions.Resource{
	{permissions.Journal, permissions.JournalIndex},
	{permissions.Snapshot, permissions.SnapshotIndex},
	{permissions.Checkpoint},
	{permissions.ReadModel, permissions.Process, permissions.ProcessIndex, permissions.Dedup, permissions.Keys, permissions.Projected, permissions.ProjectedIndex},
}

func TestThePageOfOperationsHasThePermissionsOfTheCode(t *testing.T) {
	t.Parallel()
	page := pageOf(permissionTables(t))
	names := map[string][]string{}
	for _, p := range permissions.Programs {
		row := p.Row
		if row == "" {
			row = p.Name
		}
		names[row] = append(names[row], p.Name)
	}
	assert.ElementsMatch(t, slices.Collect(maps.Keys(names)), page.rows, "the page and the code must have the same programs")

	for row, programs := range names {
		classic, packed := permissions.Of(journal.Classic, programs...), permissions.Of(journal.Packed, programs...)
		for column, resources := range columns {
			var inClassic, inAny []string
			for _, resource := range resources {
				inClassic = append(inClassic, classic[resource]...)
				inAny = append(append(inAny, classic[resource]...), packed[resource]...)
			}
			assert.Equal(t, sorted(inClassic), page.actions(row, column, false), "%s, column %d", row, column)
			assert.Equal(t, sorted(inAny), page.actions(row, column, true), "%s, column %d, with the packed layout", row, column)
		}
	}
}

func sorted(actions []string) []string {
	actions = slices.Clone(actions)
	slices.Sort(actions)
	return append([]string{}, slices.Compact(actions)...)
}

// permissionsPage holds the two tables of the page by program: the cells of the first table, and
// the cells that the packed layout adds.
type permissionsPage struct {
	rows          []string
	cells, packed map[string][]string
}

// alsoOf says which programs a row of the second table is about, if it has a name of its own.
var alsoOf = map[string][]string{
	"Load, LoadAtVersion, LoadAtTime, States, Execute, Save": {"repository: Load", "LoadAtVersion, LoadAtTime, States", "Execute, Save"},
	"Save, Execute with redundant snapshots":                 {"with redundant snapshots up to a number"},
	"Truncate":                                               {"journal: Truncate, Delete"},
	"Delete":                                                 {"journal: Truncate, Delete"},
	"groups: Trim, TrimEvery, TrimDue":                       {"Trim, TrimEvery, TrimDue"},
	"Transaction, with participants that get no events":      {"Transaction"},
}

// sameAs resolves what a cell refers to. The first that a cell has counts.
var sameAs = []struct {
	words string
	rows  []string
}{
	{"as Execute with command ids", []string{"Execute, Save", "with command ids"}},
	{"as Execute", []string{"Execute, Save"}},
	{"as Load", []string{"repository: Load"}},
	{"as its subscriber", []string{"subscriber"}},
	{"as groups", []string{"groups: List, Get, Lag, Estimate, Behind, Parked, SelectParked, Skipped", "Remove"}},
	{"as Skip", []string{"Unpark, Skip, ResetAggregate"}},
	{"as above", []string{"console"}},
	{"also", []string{"console"}}, // of "console with actions" alone
}

func pageOf(tables [2][][]string) permissionsPage {
	page := permissionsPage{cells: map[string][]string{}, packed: map[string][]string{}}
	for _, cells := range tables[0] {
		row := plain(cells[0])
		page.rows = append(page.rows, row)
		page.cells[row] = cells[1:]
	}
	for _, cells := range tables[1] {
		row := plain(cells[0])
		rows := alsoOf[row]
		if rows == nil {
			rows = []string{row}
		}
		for _, row := range rows {
			if page.cells[row] == nil { // a program of the packed layout alone
				page.rows = append(page.rows, row)
				page.cells[row] = []string{"", "", "", ""}
			}
			for column, cell := range cells[1:] {
				if len(page.packed[row]) <= column {
					page.packed[row] = append(page.packed[row], "")
				}
				page.packed[row][column] += " " + cell
			}
		}
	}
	return page
}

func plain(cell string) string { return strings.TrimSpace(strings.ReplaceAll(cell, "`", "")) }

var anAction = regexp.MustCompile("`([A-Z][a-z]+[A-Z][A-Za-z]+|Query|Scan)`")

// actions returns the contents of a cell, including those that it refers to.
func (p permissionsPage) actions(row string, column int, inPacked bool) []string {
	found := p.find(row, column, inPacked)
	slices.Sort(found)
	return append([]string{}, slices.Compact(found)...)
}

func (p permissionsPage) find(row string, column int, inPacked bool) (found []string) {
	cell := p.cells[row][column]
	for _, match := range anAction.FindAllStringSubmatch(cell, -1) {
		found = append(found, match[1])
	}
	if cells := p.packed[row]; inPacked && column < len(cells) {
		for _, match := range anAction.FindAllStringSubmatch(cells[column], -1) {
			found = append(found, match[1])
		}
	}
	for _, same := range sameAs {
		if !strings.Contains(plain(cell), same.words) || same.words == "also" && row != "console with actions" {
			continue
		}
		for _, other := range same.rows {
			found = append(found, p.find(other, column, inPacked)...)
		}
		break
	}
	return found
}
