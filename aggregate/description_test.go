package aggregate_test

import (
	"reflect"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/millrace-dev/millrace/aggregate"
)

func TestADefinitionDescribesItsTypesAndUpcasters(t *testing.T) {
	t.Parallel()
	type old struct{ Cents int }
	definition := aggregate.Define[Account]("account", Deposited{}, Withdrawn{}).WithUpcasters(
		aggregate.Upcast("account.deposited.v0", func(o old) Deposited { return Deposited{Amount: o.Cents} }),
		aggregate.Split("account.moved.v0", func(old) (aggregate.Events[Account], error) { return nil, nil }),
		aggregate.Rename("account.taken.v0", "account.withdrawn.v1"),
		aggregate.Drop("account.viewed.v0"),
	)
	of := definition.Describe()
	assert.Equal(t, reflect.TypeFor[Account](), of.State)
	assert.Equal(t, []aggregate.EventDescription{
		{Type: "account.deposited.v1", GoType: reflect.TypeFor[Deposited]()},
		{Type: "account.withdrawn.v1", GoType: reflect.TypeFor[Withdrawn]()},
	}, of.Events)
	assert.Equal(t, []aggregate.UpcasterDescription{
		{From: "account.deposited.v0", To: []string{"account.deposited.v1"}, GoType: reflect.TypeFor[old](), Returns: reflect.TypeFor[Deposited](), Codec: aggregate.JSON},
		{From: "account.moved.v0", Open: true, Splits: true, GoType: reflect.TypeFor[old](), Codec: aggregate.JSON},
		{From: "account.taken.v0", To: []string{"account.withdrawn.v1"}, Codec: aggregate.JSON},
		{From: "account.viewed.v0", Codec: aggregate.JSON},
	}, of.Upcasters)
	assert.Equal(t, aggregate.Description{State: reflect.TypeFor[Account]()}, aggregate.Definition[Account]{}.Describe())
}
