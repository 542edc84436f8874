package main

import (
	"os"
	"reflect"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/catalogue"
	"github.com/millrace-dev/millrace/catalogue/cataloguetest"
	"github.com/millrace-dev/millrace/test/docs/howto/evolve"
)

func TestTheCatalogueIsUpToDate(t *testing.T) {
	t.Parallel()
	cataloguetest.Check(t, "events", Events)
}

func TestTotalsAreText(t *testing.T) {
	t.Parallel()
	data, err := Cents(1250).MarshalJSON()
	require.NoError(t, err)
	require.Equal(t, `"12.50"`, string(data))
}

func TestThePageShowsTheFailure(t *testing.T) {
	t.Parallel()
	changed := Events
	changed.As = map[reflect.Type]reflect.Type{
		reflect.TypeFor[evolve.Placed](): reflect.TypeFor[struct {
			Customer, Currency string
			Total              int
			Country            string
		}](),
		reflect.TypeFor[Cents](): reflect.TypeFor[string](),
	}
	c, err := catalogue.New(changed)
	require.NoError(t, err)
	difference, err := c.Compare("events")
	require.NoError(t, err)
	require.Len(t, difference.Incompatible, 1)
	page, err := os.ReadFile("../../../../docs/howto/publish-a-catalogue.md")
	require.NoError(t, err)
	require.Contains(t, strings.Join(strings.Fields(string(page)), " "), difference.Incompatible[0].String())
}
