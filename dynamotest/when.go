package dynamotest

import (
	"maps"
	"slices"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/millrace-dev/millrace/dynamotest/internal/engine"
	"github.com/millrace-dev/millrace/dynamotest/internal/value"
)

// When is a condition that selects calls. All conditions of an injection must hold. Each can be
// used once.
type When func(*Injection)

// On selects operations by their names, such as "PutItem".
func On(operations ...string) When {
	return func(i *Injection) {
		mustBe(i.operations == nil && len(operations) > 0, "On names one operation or more, and may be used once")
		for _, name := range operations {
			checkOperation(name)
		}
		i.operations = operations
	}
}

// Table selects a table by its name or ARN: calls that name it, and the items of the table in
// batches and transactions.
func Table(name string) When {
	return func(i *Injection) {
		mustBe(i.table == "" && name != "", "Table names one table, and may be used once")
		i.table = engine.TableName(name)
	}
}

// Index selects an index by its name: Query and Scan of the index. For [DelayIndex] it selects
// changes to the index, and for [Throttle] also writes of its table.
func Index(name string) When {
	return func(i *Injection) {
		mustBe(i.index == "" && name != "", "Index names one index, and may be used once")
		i.index = name
	}
}

// Key selects the items with some key attributes: calls that name such an item, and only these
// items of batches and transactions. With one of two key attributes, it selects all items that have
// it. It does not hold for Query and Scan.
func Key(key map[string]types.AttributeValue) When {
	return func(i *Injection) {
		mustBe(i.key == nil && len(key) > 0, "Key has one attribute or more, and may be used once")
		normal, err := value.NormalizeItem(maps.Clone(key))
		mustBe(err == nil, "Key: %v", err)
		i.key = normal
	}
}

// Matching selects calls by a function of the operation and its input, such as a
// *dynamodb.QueryInput. match must not change the input. It is called for each attempt.
func Matching(match func(operation string, input any) bool) When {
	return func(i *Injection) {
		mustBe(i.match == nil && match != nil, "Matching has one function, and may be used once")
		i.match = match
	}
}

// After lets the first n calls pass for which the other conditions hold.
func After(n int) When {
	return func(i *Injection) {
		mustBe(n >= 0 && i.after == 0, "After(%d): the number of calls must not be negative, and may be used once", n)
		i.after = n
	}
}

// Times ends the fault after it has happened to n calls.
func Times(n int) When {
	return func(i *Injection) {
		mustBe(n > 0 && i.times < 0, "Times(%d): the number must be positive, and may be used once", n)
		i.times = n
	}
}

// Chance makes the fault happen with a probability, decided for each call by [WithSeed]. The n-th
// call of an operation with the same keys has the same decision in every run, in whatever order
// goroutines make other calls. A Query or Scan counts as the same call if its request is the same.
// With Times or After the order of all calls matters. A program with random keys must seed these
// too.
func Chance(probability float64) When {
	return func(i *Injection) {
		mustBe(probability > 0 && probability <= 1, "Chance(%v): the probability must be above 0 and at most 1", probability)
		i.chance = probability
	}
}

// check panics for conditions under which the fault can never happen.
func (i *Injection) check() {
	f := i.fault
	mustBe(!f.inside || !i.of.isRemote, "%s happens inside the database, and not in a Proxy: inject it with DB.Inject", f.name)
	mustBe(f.strike != nil || f.delay != nil, "Inject needs a fault of a function such as Throttle")
	mustBe(f.delay == nil || i.operations == nil && i.match == nil, "DelayIndex does not affect calls: do not combine it with On or Matching")
	mustBe(i.index == "" || f.age == 0, "StaleReads does not happen to reads of an index: DelayIndex makes a global index lag")
	possible := i.operations
	if possible == nil {
		possible = f.on
	}
	reads := possible == nil || slices.Contains(possible, "Query") || slices.Contains(possible, "Scan")
	mustBe(i.index == "" || f.delay != nil || f.pushesBack || reads, "%s: Index only holds for Query and Scan", f.name)
	onlyReads := possible != nil && !slices.ContainsFunc(possible, func(name string) bool { return name != "Query" && name != "Scan" })
	mustBe(i.key == nil || !onlyReads, "%s: Key does not hold for Query and Scan", f.name)
	if f.on != nil && i.operations != nil {
		can := slices.ContainsFunc(i.operations, func(name string) bool { return slices.Contains(f.on, name) })
		mustBe(can, "%s does not happen to %v, only to %v", f.name, i.operations, f.on)
	}
}

func checkOperation(name string) {
	_, known := operations[name]
	mustBe(known, "operation %q does not exist, or is not supported", name)
}
