package docs

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/ThreeDotsLabs/watermill"
	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/dynamotest"
	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/publisher"
	"github.com/millrace-dev/millrace/repository"
)

type tally struct{ Count int }

type counted struct{ Text string }

func (counted) EventType() string { return "counted.v1" }
func (counted) Apply(t *tally)    { t.Count++ }

var tallies = aggregate.Define[tally]("tally", counted{})

func TestThePageOfOperationsHasThePermissionsOfWriters(t *testing.T) {
	t.Parallel()
	for _, layout := range []journal.Layout{journal.Classic, journal.Packed} {
		count := func(tally) (aggregate.Events[tally], error) { return aggregate.Events[tally]{counted{}}, nil }
		nothing := func(tally) (aggregate.Events[tally], error) { return nil, nil }
		for _, program := range []struct {
			rows []string
			run  func(j *journal.Journal, r *repository.Repository[tally]) error
		}{
			{[]string{"Load"}, func(_ *journal.Journal, r *repository.Repository[tally]) error {
				_, err := r.Load(t.Context(), "before")
				return err
			}},
			{[]string{"Execute"}, func(_ *journal.Journal, r *repository.Repository[tally]) error {
				for range 5 { // with snapshots
					if _, err := r.Execute(t.Context(), "a", count); err != nil {
						return err
					}
				}
				return nil
			}},
			{[]string{"Execute", "with command ids"}, func(_ *journal.Journal, r *repository.Repository[tally]) error {
				for range 2 {
					for id, decide := range map[string]aggregate.Decision[tally]{"c": count, "d": nothing} {
						if _, err := r.Execute(t.Context(), "before", decide, repository.CommandID(id)); err != nil {
							return err
						}
					}
				}
				return nil
			}},
			{[]string{"Parts"}, func(_ *journal.Journal, r *repository.Repository[tally]) error {
				for range 2 {
					var parts repository.Parts
					a := r.Part(&parts, "a")
					r.Part(&parts, "before")
					decide := func() error { a.Append(counted{}); return nil }
					if err := parts.Execute(t.Context(), decide, repository.CommandID("c")); err != nil {
						return err
					}
				}
				return nil
			}},
			{[]string{"`publisher`"}, func(j *journal.Journal, _ *repository.Repository[tally]) error {
				p, err := publisher.NewPublisher(publisher.Config{Journal: j}, nil)
				if err != nil {
					return err
				}
				for range 2 {
					if err := p.Publish("tally", message.NewMessage(watermill.NewUUID(), nil)); err != nil {
						return err
					}
				}
				return p.Close()
			}},
		} {
			t.Run(string(layout)+" "+program.rows[0], func(t *testing.T) {
				db := dynamotest.New(t)
				require.NoError(t, journal.Create(t.Context(), db.Client(), journal.Config{Shards: 2, Layout: layout}))
				j, err := journal.Open(t.Context(), db.Client(), journal.Config{})
				require.NoError(t, err)
				r, err := repository.New(j, tallies, repository.Config{Snapshots: repository.Every(2)})
				require.NoError(t, err)
				_, err = r.Execute(t.Context(), "before", count)
				require.NoError(t, err)
				used := spy(db)

				require.NoError(t, program.run(j, r))

				tables := permissions(t)
				for _, use := range used() {
					i := slices.Index([]string{"journal", "snapshot"}, use.table)
					require.GreaterOrEqual(t, i, 0, use.table)
					var allowed []string
					for _, row := range program.rows {
						allowed = append(allowed, actionsIn(tables[0], row, i)...)
						if layout == journal.Packed {
							allowed = append(allowed, actionsIn(tables[1], row, i)...)
						}
					}
					assert.Contains(t, allowed, use.action, use.table)
				}
			})
		}
	}
}

// permissions returns the two tables of the page, by rows and cells.
func permissions(t *testing.T) (tables [2][][]string) {
	t.Helper()
	page, err := os.ReadFile("operations/permissions.md")
	require.NoError(t, err)
	_, section, _ := strings.Cut(string(page), "\n## Actions by table\n")
	section, _, _ = strings.Cut(section, "\n## ")
	found := -1
	for line := range strings.Lines(section) {
		cells := strings.Split(strings.TrimSpace(line), "|")
		switch {
		case !strings.HasPrefix(line, "|") || strings.HasPrefix(line, "|--"):
		case strings.HasPrefix(line, "| program "):
			found++
		default:
			tables[found] = append(tables[found], cells[1:])
		}
	}
	require.Equal(t, 1, found)
	return tables
}

var (
	inBackticks = regexp.MustCompile("`([A-Z][A-Za-z]+)`")
	asAnother   = regexp.MustCompile(`as (Load|Execute)`)
)

// actionsIn returns what a column of some rows has, with what their cells refer to.
func actionsIn(rows [][]string, name string, column int) (actions []string) {
	for _, row := range rows {
		if !strings.Contains(row[0], name) || name == "Load" && !strings.Contains(row[0], "`repository`") && !strings.HasPrefix(row[0], " Load,") {
			continue
		}
		cell := row[1+column]
		for _, match := range inBackticks.FindAllStringSubmatch(cell, -1) {
			actions = append(actions, match[1])
		}
		if other := asAnother.FindStringSubmatch(cell); other != nil {
			actions = append(actions, actionsIn(rows, other[1], column)...)
		}
	}
	if name == "Parts" { // which are as Execute in the second table as well
		actions = append(actions, actionsIn(rows, "Execute", column)...)
	}
	return actions
}

type use struct{ table, action string }

// spy collects the actions that IAM would ask for.
func spy(db *dynamotest.DB) func() []use {
	var mu sync.Mutex
	var uses []use
	add := func(table *string, action string) {
		if u := (use{*table, action}); !slices.Contains(uses, u) {
			uses = append(uses, u)
		}
	}
	db.Inject(dynamotest.Throttle(), dynamotest.Matching(func(_ string, input any) bool {
		mu.Lock()
		defer mu.Unlock()
		switch in := input.(type) {
		case *dynamodb.GetItemInput:
			add(in.TableName, "GetItem")
		case *dynamodb.QueryInput:
			add(in.TableName, "Query")
		case *dynamodb.ScanInput:
			add(in.TableName, "Scan")
		case *dynamodb.BatchWriteItemInput:
			for table := range in.RequestItems {
				add(&table, "BatchWriteItem")
			}
		case *dynamodb.BatchGetItemInput:
			for table := range in.RequestItems {
				add(&table, "BatchGetItem")
			}
		case *dynamodb.TransactGetItemsInput:
			for _, get := range in.TransactItems {
				add(get.Get.TableName, "GetItem")
			}
		case *dynamodb.PutItemInput:
			add(in.TableName, "PutItem")
		case *dynamodb.UpdateItemInput:
			add(in.TableName, "UpdateItem")
		case *dynamodb.DeleteItemInput:
			add(in.TableName, "DeleteItem")
		case *dynamodb.TransactWriteItemsInput:
			for _, action := range in.TransactItems {
				switch {
				case action.Put != nil:
					add(action.Put.TableName, "PutItem")
				case action.Update != nil:
					add(action.Update.TableName, "UpdateItem")
				case action.Delete != nil:
					add(action.Delete.TableName, "DeleteItem")
				case action.ConditionCheck != nil:
					add(action.ConditionCheck.TableName, "ConditionCheckItem")
				}
			}
		default:
			other := "the page's test knows no such request"
			add(&other, other)
		}
		return false
	}))
	return func() []use {
		mu.Lock()
		defer mu.Unlock()
		return slices.Clone(uses)
	}
}
