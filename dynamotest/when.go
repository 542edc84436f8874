package dynamotest

import (
	"maps"
	"slices"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/millrace-dev/millrace/dynamotest/internal/engine"
	"github.com/millrace-dev/millrace/dynamotest/internal/value"
)

// When says to which calls a fault happens. All conditions of an injection must hold, and each can
// be given once.
type When func(*Injection)

// On is the operations, such as "PutItem".
func On(operations ...string) When {
	return func(i *Injection) {
		mustBe(i.operations == nil && len(operations) > 0, "On names one operation or more, and is given once")
		for _, name := range operations {
			checkOperation(name)
		}
		i.operations = operations
	}
}

// Table is the table by its name or ARN: calls that name it, and of batches and transactions what
// is in it.
func Table(name string) When {
	return func(i *Injection) {
		mustBe(i.table == "" && name != "", "Table names one table, and is given once")
		i.table = engine.TableName(name)
	}
}

// Index is the index by its name: Query and Scan of it; for [DelayIndex] what is on its way to it,
// and for [Throttle] also writes of its table.
func Index(name string) When {
	return func(i *Injection) {
		mustBe(i.index == "" && name != "", "Index names one index, and is given once")
		i.index = name
	}
}

// Key is the item with some key attributes: calls that name it, and of batches and transactions
// only that item. One attribute of two stands for all items that have it. It does not hold for
// Query and Scan.
func Key(key map[string]types.AttributeValue) When {
	return func(i *Injection) {
		mustBe(i.key == nil && len(key) > 0, "Key has one attribute or more, and is given once")
		normal, err := value.NormalizeItem(maps.Clone(key))
		mustBe(err == nil, "Key: %v", err)
		i.key = normal
	}
}

// Matching is what a function says of an operation and its input, such as a *dynamodb.QueryInput,
// which it must not change. It is asked for each attempt.
func Matching(match func(operation string, input any) bool) When {
	return func(i *Injection) {
		mustBe(i.match == nil && match != nil, "Matching has one function, and is given once")
		i.match = match
	}
}

// After lets the first n calls pass that the other conditions hold for.
func After(n int) When {
	return func(i *Injection) {
		mustBe(n >= 0 && i.after == 0, "After(%d): a number of calls is not negative, and is given once", n)
		i.after = n
	}
}

// Times ends the fault when it has happened to n calls.
func Times(n int) When {
	return func(i *Injection) {
		mustBe(n > 0 && i.times < 0, "Times(%d): a fault that never happens is none, and the number is given once", n)
		i.times = n
	}
}

// Chance draws for each call, by [Seed]. The n-th call of an operation with the same keys, or for
// Query and Scan with the same request, draws the same in every run, in whatever order goroutines
// make other calls. (With Times or After that order matters, as those count the calls of all.) A
// program whose keys are random must seed those too.
func Chance(probability float64) When {
	return func(i *Injection) {
		mustBe(probability > 0 && probability <= 1, "Chance(%v): a probability is above 0 and at most 1", probability)
		i.chance = probability
	}
}

// check refuses conditions under which the fault can never happen.
func (i *Injection) check() {
	f := i.fault
	mustBe(!f.inside || !i.of.isRemote, "%s happens inside the database, where a Proxy does not reach: inject it with DB.Inject", f.name)
	mustBe(f.strike != nil || f.delay != nil, "Inject needs a fault made by a function such as Throttle")
	mustBe(f.delay == nil || i.operations == nil && i.match == nil, "DelayIndex is about no call: On and Matching do not go with it")
	possible := i.operations
	if possible == nil {
		possible = f.on
	}
	reads := possible == nil || slices.Contains(possible, "Query") || slices.Contains(possible, "Scan")
	mustBe(i.index == "" || f.delay != nil || f.pushesBack || reads, "%s: Index holds for Query and Scan only", f.name)
	onlyReads := possible != nil && !slices.ContainsFunc(possible, func(name string) bool { return name != "Query" && name != "Scan" })
	mustBe(i.key == nil || !onlyReads, "%s: Key does not hold for Query and Scan", f.name)
	if f.on != nil && i.operations != nil {
		can := slices.ContainsFunc(i.operations, func(name string) bool { return slices.Contains(f.on, name) })
		mustBe(can, "%s does not happen to %v, only to %v", f.name, i.operations, f.on)
	}
}

func checkOperation(name string) {
	_, known := operations[name]
	mustBe(known, "there is no operation %q, or it is not supported", name)
}
