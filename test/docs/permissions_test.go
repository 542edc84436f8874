package docs

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/ThreeDotsLabs/watermill"
	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/dynamotest"
	"github.com/millrace-dev/millrace/internal/permissions"
	"github.com/millrace-dev/millrace/internal/testjournal"
	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/publisher"
	"github.com/millrace-dev/millrace/repository"
)

type tally struct{ Count int }

type counted struct{ Text string }

func (counted) EventType() string { return "counted.v1" }
func (counted) Apply(t *tally)    { t.Count++ }

var tallies = aggregate.Define[tally]("tally", counted{})

func TestWritersNeedNoOtherPermissions(t *testing.T) {
	t.Parallel()
	for _, layout := range []journal.Layout{journal.Classic, journal.Packed} {
		count := func(tally) (aggregate.Events[tally], error) { return aggregate.Events[tally]{counted{}}, nil }
		nothing := func(tally) (aggregate.Events[tally], error) { return nil, nil }
		for _, program := range []struct {
			needs []string
			run   func(j *journal.Journal, r *repository.Repository[tally]) error
		}{
			{[]string{"Load"}, func(_ *journal.Journal, r *repository.Repository[tally]) error {
				_, err := r.Load(t.Context(), "before")
				return err
			}},
			{[]string{"Execute, Save"}, func(_ *journal.Journal, r *repository.Repository[tally]) error {
				for range 5 { // with snapshots
					if _, err := r.Execute(t.Context(), "a", count); err != nil {
						return err
					}
				}
				return nil
			}},
			{[]string{"Execute, Save", "with command ids"}, func(_ *journal.Journal, r *repository.Repository[tally]) error {
				for range 2 {
					for id, decide := range map[string]aggregate.Decision[tally]{"c": count, "d": nothing} {
						if _, err := r.Execute(t.Context(), "before", decide, repository.WithCommandID(id)); err != nil {
							return err
						}
					}
				}
				return nil
			}},
			{[]string{"Transaction", "with command ids"}, func(_ *journal.Journal, r *repository.Repository[tally]) error {
				for range 2 {
					var tx repository.Transaction
					a := r.AddTo(&tx, "a")
					r.AddTo(&tx, "before")
					decide := func() error { a.Append(counted{}); return nil }
					if err := tx.Execute(t.Context(), decide, repository.WithCommandID("c")); err != nil {
						return err
					}
				}
				return nil
			}},
			{[]string{"journal.Create", "with more types in RequiredByType"}, func(j *journal.Journal, _ *repository.Repository[tally]) error {
				config := j.Config()
				config.RequiredByType = map[string][]string{"person": {"aes-gcm"}}
				return journal.Create(t.Context(), j.Client(), config)
			}},
			{[]string{"publisher"}, func(j *journal.Journal, _ *repository.Repository[tally]) error {
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
			t.Run(string(layout)+" "+program.needs[0], func(t *testing.T) {
				db := dynamotest.New(t)
				j := testjournal.New(t, db.Client(), journal.Config{Shards: 2, Layout: layout})
				r := testjournal.Repository(t, j, tallies, repository.Config{Snapshots: repository.Every(2)})
				testjournal.Execute(t, r, "before", count)
				used := spy(db)

				require.NoError(t, program.run(j, r))

				allowed := permissions.Of(layout, append(program.needs, "journal.Open")...)
				for _, use := range used() {
					assert.Contains(t, allowed[resourceOf(use)], use.Action, "on %s", resourceOf(use))
				}
			})
		}
	}
}

// permissionTables returns the two tables of the page, by rows and cells.
func permissionTables(t *testing.T) (tables [2][][]string) {
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

// resourceOf returns the resource of tables that have their default names.
func resourceOf(use permissions.Use) permissions.Resource {
	if use.Index != "" {
		return permissions.Resource(use.Table + "/index")
	}
	return permissions.Resource(use.Table)
}

// spy collects the permissions that IAM would ask for.
func spy(db *dynamotest.DB) func() []permissions.Use {
	var mu sync.Mutex
	var uses []permissions.Use
	db.Inject(dynamotest.Throttle(), dynamotest.Matching(func(_ string, input any) bool {
		mu.Lock()
		defer mu.Unlock()
		asked, known := permissions.Uses(input)
		if !known {
			asked = []permissions.Use{{Action: fmt.Sprintf("%T", input)}}
		}
		for _, use := range asked {
			if !slices.Contains(uses, use) {
				uses = append(uses, use)
			}
		}
		return false
	}))
	return func() []permissions.Use {
		mu.Lock()
		defer mu.Unlock()
		return slices.Clone(uses)
	}
}
