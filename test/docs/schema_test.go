package docs

import (
	"database/sql"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/dynamotest"
	"github.com/millrace-dev/millrace/internal/testjournal"
	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/process"
	"github.com/millrace-dev/millrace/projection/sqlprojection"
)

const schemaPage = "reference/schema.md"

// rare are attributes that the applications of this test do not write, each with its reason.
var rare = map[string]map[string]string{
	"checkpoint-shards": {
		"external_positions": "needs positions in another store",
		"rows":               "needs a projection with a row for each aggregate",
		"unfenced":           "needs a member that crashes during a transaction",
	},
	"checkpoint-retention": {
		"held":     "needs a message that a group has kept for a week",
		"again_at": "the same",
	},
	"checkpoint-member": {"operator": "is there only while an operator edits a row"},
	"checkpoint-cursor": {"reconciling": "needs a reconciliation that takes more than 5 seconds"},
	"checkpoint-behind": {
		"resumed": "needs an event that fails after a pause",
		"begun":   "needs a burst whose process was killed",
	},
}

func TestThePageOfTablesListsTheAttributesThatApplicationsWrite(t *testing.T) {
	t.Parallel()
	written := &attributes{of: map[string]map[string]map[string]bool{}}
	testjournal.EachLayout(t, func(t *testing.T, layout journal.Layout) {
		writeEverything(t, layout, written)
	})
	page := schemaLists(t)
	t.Cleanup(func() { // after both applications
		if !t.Failed() {
			compareLists(t, page, written.of)
		}
	})
}

// compareLists compares the attributes on the page with those that were written.
func compareLists(t *testing.T, page map[string]map[string]string, written map[string]map[string]map[string]bool) {
	t.Helper()
	for list, attributes := range written {
		for name, kinds := range attributes {
			if _, isListed := page[list][name]; !isListed && (name == "pkey" || name == "skey") {
				continue // the page has the keys of each table once
			}
			if !assert.Contains(t, page[list], name, "the list %s of %s lacks an attribute", list, schemaPage) {
				continue
			}
			for kind := range kinds {
				assert.Contains(t, strings.Split(page[list][name], " or "), kind, "%s in the list %s has another type", name, list)
			}
		}
	}
	for list, attributes := range page {
		var missing []string
		for name := range attributes {
			reason, isRare := rare[list][name]
			_, isWritten := written[list][name]
			if isRare {
				assert.False(t, isWritten, "%s of the list %s was written, though it %s", name, list, reason)
			} else if !isWritten {
				missing = append(missing, name)
			}
		}
		assert.Empty(t, missing, "no application has written these attributes of the list %s: correct the list, or the applications", list)
	}
}

func TestThePageOfTablesListsKeysAndIndexes(t *testing.T) {
	t.Parallel()
	page := read(t, schemaPage)
	tables := []journal.TableSchema{process.TableSchema("")}
	for _, layout := range []journal.Layout{journal.Classic, journal.Packed} {
		of, err := journal.Schema(journal.Config{Layout: layout})
		require.NoError(t, err)
		tables = append(tables, of...)
	}
	ofKeys := map[string]map[string]bool{} // the tables with these keys
	for _, table := range tables {
		kinds := map[string]types.ScalarAttributeType{}
		for _, attribute := range table.Input.AttributeDefinitions {
			kinds[*attribute.AttributeName] = attribute.AttributeType
		}
		keys := fmt.Sprintf("Keys: `pkey` (partition key, %s), `skey` (sort key, %s).", kinds["pkey"], kinds["skey"])
		if ofKeys[keys] == nil {
			ofKeys[keys] = map[string]bool{}
		}
		ofKeys[keys][*table.Input.TableName] = true
		for _, index := range table.Input.GlobalSecondaryIndexes {
			row := "| `" + *index.IndexName + "` |"
			for _, key := range index.KeySchema {
				row += " `" + *key.AttributeName + "` |"
			}
			assert.Contains(t, page, row, "an index of %s", *table.Input.TableName)
		}
	}
	for keys, names := range ofKeys {
		assert.Equal(t, len(names), strings.Count(page, keys), "%s of %v", keys, slices.Sorted(maps.Keys(names)))
	}
}

func TestThePageOfTablesListsTheColumnsOfPositions(t *testing.T) {
	t.Parallel()
	store, err := sqlprojection.New(&sql.DB{}, sqlprojection.Config{Dialect: sqlprojection.SQLite})
	require.NoError(t, err)
	var columns []string
	for _, column := range regexp.MustCompile(`(?m)^\t([a-z_]+) `).FindAllStringSubmatch(store.Schema(), -1) {
		columns = append(columns, column[1])
	}
	require.NotEmpty(t, columns)
	assert.ElementsMatch(t, columns, slices.Collect(maps.Keys(listsOf(t, "sql")["sql"])))
}

// schemaLists are the lists of the page, without that of the SQL table: the types of attributes by
// list and name.
func schemaLists(t *testing.T) map[string]map[string]string {
	t.Helper()
	lists := listsOf(t, "[a-z-]+")
	delete(lists, "sql")
	require.Greater(t, len(lists), 15)
	return lists
}

// listsOf returns the lists of the page whose names match.
func listsOf(t *testing.T, name string) map[string]map[string]string {
	t.Helper()
	lists := map[string]map[string]string{}
	for _, list := range regexp.MustCompile(`(?s)<!-- (`+name+`) -->\n(.*?)<!-- /`).FindAllStringSubmatch(read(t, schemaPage), -1) {
		attributes := map[string]string{}
		for _, row := range regexp.MustCompile("(?m)^\\| `([^`]+)` \\| ([^|]+) \\|").FindAllStringSubmatch(list[2], -1) {
			attributes[row[1]] = row[2]
		}
		require.NotEmpty(t, attributes, list[1])
		lists[list[1]] = attributes
	}
	return lists
}

// attributes are the types of attributes by the list of the page and their names.
type attributes struct {
	mu sync.Mutex
	of map[string]map[string]map[string]bool
}

func (a *attributes) add(list string, item map[string]types.AttributeValue) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.of[list] == nil {
		a.of[list] = map[string]map[string]bool{}
	}
	for name, value := range item {
		if a.of[list][name] == nil {
			a.of[list][name] = map[string]bool{}
		}
		a.of[list][name][kindOf(value)] = true
	}
}

func kindOf(value types.AttributeValue) string {
	switch value.(type) {
	case *types.AttributeValueMemberS:
		return "S"
	case *types.AttributeValueMemberN:
		return "N"
	case *types.AttributeValueMemberB:
		return "B"
	case *types.AttributeValueMemberBOOL:
		return "BOOL"
	case *types.AttributeValueMemberL:
		return "L"
	case *types.AttributeValueMemberSS:
		return "SS"
	case *types.AttributeValueMemberM:
		return "M"
	default:
		return "another type"
	}
}

// scan adds the attributes of all items of a database. It returns the lists that have an attribute
// now, as "list.attribute".
func (a *attributes) scan(t *testing.T, db *dynamotest.DB, layout journal.Layout) map[string]bool {
	t.Helper()
	now := &attributes{of: map[string]map[string]map[string]bool{}}
	tables, err := db.Client().ListTables(t.Context(), &dynamodb.ListTablesInput{})
	require.NoError(t, err)
	for _, table := range tables.TableNames {
		pages := dynamodb.NewScanPaginator(db.Client(), &dynamodb.ScanInput{TableName: &table})
		for pages.HasMorePages() {
			page, err := pages.NextPage(t.Context())
			require.NoError(t, err)
			for _, item := range page.Items {
				now.addItem(t, layout, table, item)
				a.addItem(t, layout, table, item)
			}
		}
	}
	found := map[string]bool{}
	for list, attributes := range now.of {
		for name := range attributes {
			found[list+"."+name] = true
		}
	}
	return found
}

// addItem adds an item, and the maps in it that have a list of their own.
func (a *attributes) addItem(t *testing.T, layout journal.Layout, table string, item map[string]types.AttributeValue) {
	t.Helper()
	_, name, _ := strings.Cut(table, "-") // without the prefix
	list := listOf(layout, name, text(item["pkey"]), text(item["skey"]))
	a.add(list, item)
	switch list {
	case "checkpoint-shards":
		for _, member := range item["members"].(*types.AttributeValueMemberM).Value {
			a.add("checkpoint-member", member.(*types.AttributeValueMemberM).Value)
		}
		if stopped, ok := item["stopped"].(*types.AttributeValueMemberM); ok {
			a.add("checkpoint-stopped", stopped.Value)
		}
	case "process":
		if commands, ok := item["commands"].(*types.AttributeValueMemberL); ok {
			for _, command := range commands.Value {
				a.add("process-command", command.(*types.AttributeValueMemberM).Value)
			}
		}
	}
}

// listOf returns the list of the page for an item.
func listOf(layout journal.Layout, table, partition, sort string) string {
	switch {
	case table == "journal" && partition == "millrace":
		return "descriptor"
	case table == "journal" && strings.HasPrefix(partition, "millrace-command-"):
		return "parts-guard"
	case layout == journal.Packed && (table == "journal" || table == "snapshot"):
		return "packed-" + table
	case table == "journal" && strings.HasSuffix(sort, "~"):
		return "classic-guard"
	case table == "journal":
		return "classic-event"
	case table == "snapshot" && strings.HasSuffix(sort, "-0"):
		return "classic-head"
	case table == "snapshot":
		return "classic-redundant"
	case table == "checkpoint" && partition == "groups":
		return "checkpoint-registry"
	case table == "checkpoint" && partition == "retention":
		return "checkpoint-retention"
	case table == "checkpoint":
		kind, _, _ := strings.Cut(sort, "/")
		return "checkpoint-" + kind
	default:
		return table
	}
}

func text(value types.AttributeValue) string {
	switch v := value.(type) {
	case *types.AttributeValueMemberS:
		return v.Value
	case *types.AttributeValueMemberN:
		return v.Value
	default:
		return ""
	}
}

// await scans until the database has attributes.
func (a *attributes) await(t *testing.T, db *dynamotest.DB, layout journal.Layout, wanted ...string) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); ; {
		found := a.scan(t, db, layout)
		missing := slices.DeleteFunc(slices.Clone(wanted), func(w string) bool { return found[w] })
		if len(missing) == 0 {
			return
		}
		require.True(t, time.Now().Before(deadline), "nothing has written %v", missing)
		<-time.After(50 * time.Millisecond)
	}
}
