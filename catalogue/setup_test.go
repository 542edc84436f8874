package catalogue_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/catalogue"
)

// order is the aggregate of these tests.
type (
	order struct {
		Customer string `json:"customer"`
		Paid     bool   `json:"paid"`
	}
	placed   struct{ Customer string }
	placedV2 struct{ Customer, Currency string }
	paid     struct{}
	settled  struct{}
)

func (placed) EventType() string   { return "order.placed.v1" }
func (placedV2) EventType() string { return "order.placed.v2" }
func (paid) EventType() string     { return "order.paid.v1" }
func (settled) EventType() string  { return "order.settled.v1" }

func (e placed) Apply(o *order)   { o.Customer = e.Customer }
func (e placedV2) Apply(o *order) { o.Customer = e.Customer }
func (paid) Apply(o *order)       { o.Paid = true }
func (settled) Apply(o *order)    { o.Paid = true }

func define(events ...aggregate.Event[order]) aggregate.Definition[order] {
	return aggregate.Define[order]("order", events...)
}

func configOf(definitions ...aggregate.AnyDefinition) catalogue.Config {
	return catalogue.Config{Definitions: definitions}
}

// placedAs is a configuration in which the event placed has the JSON of another Go type.
func placedAs(of any) catalogue.Config {
	c := configOf(define(placed{}))
	c.As = map[reflect.Type]reflect.Type{reflect.TypeFor[placed](): reflect.TypeOf(of)}
	return c
}

// write writes a catalogue into a new folder.
func write(t *testing.T, c catalogue.Config) (dir string) {
	t.Helper()
	dir = filepath.Join(t.TempDir(), "events")
	_, err := catalogue.Write(dir, c)
	require.NoError(t, err)
	return dir
}

// compare returns the differences to a catalogue that was written before.
func compare(t *testing.T, before, after catalogue.Config) catalogue.Difference {
	t.Helper()
	c, err := catalogue.New(after)
	require.NoError(t, err)
	d, err := c.Compare(write(t, before))
	require.NoError(t, err)
	return d
}

func texts(changes []catalogue.Change) (texts []string) {
	for _, c := range changes {
		texts = append(texts, c.String())
	}
	return texts
}

func readFile(t *testing.T, dir, name string) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(dir, filepath.FromSlash(name)))
	require.NoError(t, err)
	return string(data)
}

func readJSON(t *testing.T, data []byte) (value map[string]any) {
	t.Helper()
	require.NoError(t, json.Unmarshal(data, &value))
	return value
}
