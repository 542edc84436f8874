package aggregatetest_test

import (
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/aggregate/aggregatetest"
)

func TestScenarioOfSeveralStepsPasses(t *testing.T) {
	t.Parallel()

	// It has a monotonic reading, which no codec keeps.
	now := time.Now()
	aggregatetest.Given(t, Wallets, Deposited{"EUR", 100, now}).
		When(Withdraw("EUR", 30)).Then(Withdrawn{"EUR", 30}).
		When(Withdraw("EUR", 71)).ThenError(errInsufficientFunds).
		When(produce()).ThenNothing().Then().
		When(produce(&Noted{"a"}, &Noted{"b"})).Then(&Noted{"a"}, &Noted{"b"}).
		When(Withdraw("EUR", 70)).
		ThenState(Wallet{Balances: map[string]int{"EUR": 0}, Notes: []string{"a", "b"}, LastAt: now})
}

func TestScenarioMayLookAtTheStateItWasGiven(t *testing.T) {
	t.Parallel()

	aggregatetest.Given(t, Wallets).ThenState(Wallet{})
	aggregatetest.Given(t, Wallets, Deposited{Currency: "EUR", Amount: 5}).
		ThenState(Wallet{Balances: map[string]int{"EUR": 5}}).
		ThenStateFunc(func(t testing.TB, w Wallet) {
			t.Helper()
			assert.Equal(t, 5, w.Balances["EUR"])
			w.Balances["EUR"] = 0 // it is a copy
		}).
		ThenState(Wallet{Balances: map[string]int{"EUR": 5}})
}

func TestScenarioHandsARefusalToItsCheck(t *testing.T) {
	t.Parallel()

	aggregatetest.Given(t, Wallets).
		When(Withdraw("EUR", 30)).
		ThenErrorFunc(func(t testing.TB, err error) {
			t.Helper()
			var short *shortfall
			require.ErrorAs(t, err, &short)
			assert.Equal(t, 30, short.missing)
		}).
		ThenError(errInsufficientFunds)
}

func TestScenarioReadsStoredEventsAsALoadDoes(t *testing.T) {
	t.Parallel()

	wallets := Wallets.WithUpcasters(
		aggregate.Split("wallet.swapped.v0", func(old struct{ From, To string }) (aggregate.Events[Wallet], error) {
			return aggregate.Events[Wallet]{Withdrawn{old.From, 1}, Deposited{Currency: old.To, Amount: 1}}, nil
		}),
	)
	aggregatetest.Given(t, wallets, Deposited{Currency: "EUR", Amount: 5}).
		Stored("wallet.swapped.v0", `{"From":"EUR","To":"USD"}`).
		Stored("wallet.noted.v1", `{"Text":"a"}`).
		ThenState(Wallet{Balances: map[string]int{"EUR": 4, "USD": 1}, Notes: []string{"a"}}).
		When(Withdraw("USD", 2)).ThenError(errInsufficientFunds).
		When(Withdraw("USD", 1)).Then(Withdrawn{"USD", 1})
}

func TestScenarioWorksWithAnyCodec(t *testing.T) {
	t.Parallel()

	aggregatetest.Given(t, Wallets.WithCodec(reversedJSON{}), Deposited{Currency: "EUR", Amount: 100}).
		When(Withdraw("EUR", 30)).Then(Withdrawn{"EUR", 30})
}

func TestFailingScenariosSayWhatHappened(t *testing.T) {
	t.Parallel()

	deposit := Deposited{Currency: "EUR", Amount: 100}
	tests := map[string]struct {
		scenario func(t testing.TB)
		says     []string
	}{
		"another event": {
			func(t testing.TB) {
				aggregatetest.Given(t, Wallets, deposit).When(Withdraw("EUR", 30)).Then(Withdrawn{"EUR", 31})
			},
			[]string{
				"When 1 (after 1 event): the events are not as expected (-want +got)\n" +
					"  aggregatetest_test.Withdrawn{\n" +
					"    Currency: \"EUR\",\n" +
					"-   Amount:   31,\n" +
					"+   Amount:   30,\n" +
					"  }",
			},
		},
		"an event of another type": {
			func(t testing.TB) {
				aggregatetest.Given(t, Wallets, deposit).When(Withdraw("EUR", 30)).Then(deposit)
			},
			[]string{
				`- aggregatetest_test.Deposited{Currency: "EUR", Amount: 100}`,
				`+ aggregatetest_test.Withdrawn{Currency: "EUR", Amount: 30}`,
			},
		},
		"a pointer expected for a value": {
			func(t testing.TB) {
				aggregatetest.Given(t, Wallets, deposit).When(Withdraw("EUR", 30)).Then(&Withdrawn{"EUR", 30})
			},
			[]string{
				"- &aggregatetest_test.Withdrawn{Currency: \"EUR\", Amount: 30}\n+ aggregatetest_test.Withdrawn{",
				"expected event 1: unencodable event", "the event is a *aggregatetest_test.Withdrawn and the definition has aggregatetest_test.Withdrawn",
			},
		},
		"too few events": {
			func(t testing.TB) {
				aggregatetest.Given(t, Wallets, deposit).When(Withdraw("EUR", 30)).Then(Withdrawn{"EUR", 30}, &Noted{"bye"})
			},
			[]string{"  aggregatetest_test.Withdrawn{Currency: \"EUR\", Amount: 30}\n- &aggregatetest_test.Noted{Text: \"bye\"}"},
		},
		"too many events": {
			func(t testing.TB) {
				aggregatetest.Given(t, Wallets, deposit).When(Withdraw("EUR", 30)).Then()
			},
			[]string{"as expected (-want +got)\n+ aggregatetest_test.Withdrawn{"},
		},
		"the order of events": {
			func(t testing.TB) {
				aggregatetest.Given(t, Wallets).When(produce(&Noted{"a"}, &Noted{"b"})).Then(&Noted{"b"}, &Noted{"a"})
			},
			[]string{"(-want +got)\n- &aggregatetest_test.Noted{Text: \"b\"}\n  &aggregatetest_test.Noted{Text: \"a\"}\n+ &aggregatetest_test.Noted{Text: \"b\"}"},
		},
		"an event where nothing was expected": {
			func(t testing.TB) {
				aggregatetest.Given(t, Wallets, deposit).When(Withdraw("EUR", 30)).ThenNothing()
			},
			[]string{"expected no events, got 1 event\n+ aggregatetest_test.Withdrawn{"},
		},
		"the failing step among several": {
			func(t testing.TB) {
				aggregatetest.Given(t, Wallets, deposit).
					When(produce(&Noted{"a"}, &Noted{"b"})).
					When(Withdraw("EUR", 30)).Then(Withdrawn{"EUR", 30}).
					When(Withdraw("EUR", 30)).Then(Withdrawn{"USD", 30}).
					When(Withdraw("EUR", 30)).Then(Withdrawn{"CHF", 30})
			},
			[]string{"When 3 (after 4 events): the events are not", "-   Currency: \"USD\",\n+   Currency: \"EUR\","},
		},
		"a refusal where events were expected": {
			func(t testing.TB) {
				aggregatetest.Given(t, Wallets).When(Withdraw("EUR", 30)).Then(Withdrawn{"EUR", 30})
			},
			[]string{`When 1 (after 0 events): the decision was refused with "insufficient funds" and no ThenError expects that`},
		},
		"a refusal where nothing was expected": {
			func(t testing.TB) { aggregatetest.Given(t, Wallets).When(Withdraw("EUR", 30)).ThenNothing() },
			[]string{`refused with "insufficient funds"`},
		},
		"a refusal where a state was expected": {
			func(t testing.TB) { aggregatetest.Given(t, Wallets).When(Withdraw("EUR", 30)).ThenState(Wallet{}) },
			[]string{`refused with "insufficient funds"`},
		},
		"a refusal that the next step leaves behind": {
			func(t testing.TB) {
				aggregatetest.Given(t, Wallets).When(Withdraw("EUR", 30)).When(produce()).ThenNothing()
			},
			[]string{`When 1 (after 0 events): the decision was refused with "insufficient funds"`},
		},
		"a refusal that nothing looks at": {
			func(t testing.TB) { aggregatetest.Given(t, Wallets).When(Withdraw("EUR", 30)) },
			[]string{`When 1 (after 0 events): the decision was refused with "insufficient funds" and no ThenError expects that`},
		},
		"another refusal": {
			func(t testing.TB) {
				aggregatetest.Given(t, Wallets).When(refuse(errFrozen)).ThenError(errInsufficientFunds)
			},
			[]string{`expected a refusal with "insufficient funds", got "the wallet is frozen"`},
		},
		"no refusal": {
			func(t testing.TB) {
				aggregatetest.Given(t, Wallets, deposit).When(Withdraw("EUR", 30)).ThenError(errInsufficientFunds)
			},
			[]string{`expected a refusal with "insufficient funds", but the decision was accepted with 1 event`, "+ aggregatetest_test.Withdrawn{"},
		},
		"no refusal to check": {
			func(t testing.TB) {
				aggregatetest.Given(t, Wallets).When(produce()).ThenErrorFunc(func(testing.TB, error) { panic("not reached") })
			},
			[]string{"expected a refusal with an error, but the decision was accepted with 0 events"},
		},
		"ThenError without an error": {
			func(t testing.TB) { aggregatetest.Given(t, Wallets).When(produce()).ThenError(nil) },
			[]string{"ThenError needs an error: use ThenNothing or Then"},
		},
		"Then without When": {
			func(t testing.TB) { aggregatetest.Given(t, Wallets, deposit).Then(deposit) },
			[]string{"Given: Then needs a When before it"},
		},
		"a decision that is nil": {
			func(t testing.TB) { aggregatetest.Given(t, Wallets).When(nil).ThenNothing() },
			[]string{"When 1 (after 0 events): the decision is nil"},
		},
		"another state": {
			func(t testing.TB) {
				aggregatetest.Given(t, Wallets, deposit).When(Withdraw("EUR", 30)).
					ThenState(Wallet{Balances: map[string]int{"EUR": 100}})
			},
			[]string{"the state is not as expected (-want +got)\n  aggregatetest_test.Wallet{\n-   Balances: map[string]int{\"EUR\": 100},\n+   Balances: map[string]int{\"EUR\": 70},"},
		},
		"an invalid definition": {
			func(t testing.TB) { aggregatetest.Given(t, aggregate.Define[Wallet]("")).When(produce()) },
			[]string{"Given: invalid aggregate definition", "the aggregate type is empty"},
		},
		"a given event that is not defined": {
			func(t testing.TB) { aggregatetest.Given(t, Wallets, deposit, rogue{}).When(produce()) },
			[]string{`Given: event 2: unknown event type "rogue.v1"`, "known: wallet.deposited.v1"},
		},
		"a produced event that is not defined": {
			func(t testing.TB) { aggregatetest.Given(t, Wallets).When(produce(&Noted{"a"}, rogue{})) },
			[]string{`When 1 (after 0 events): produced event 2: unknown event type "rogue.v1"`},
		},
		"a nil event": {
			func(t testing.TB) { aggregatetest.Given(t, Wallets).When(produce(nil)) },
			[]string{"produced event 1", "the event is nil"},
		},
		"an event of a codec that is not text": {
			func(t testing.TB) {
				aggregatetest.Given(t, Wallets.WithCodec(gobCodec{})).When(produce(&Noted{"a"})).ThenNothing()
			},
			[]string{`+ &aggregatetest_test.Noted{Text: "a"}`},
		},
		"an expected event that is not defined": {
			func(t testing.TB) { aggregatetest.Given(t, Wallets).When(produce()).Then(rogue{}) },
			[]string{"- aggregatetest_test.rogue{}\nexpected event 1: unknown event type \"rogue.v1\""},
		},
		"an expected event that is nil": {
			func(t testing.TB) { aggregatetest.Given(t, Wallets).When(produce()).Then(nil) },
			[]string{"- nil\nexpected event 1: unencodable event"},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			message := failure(t, test.scenario)
			for _, part := range test.says {
				assert.Contains(t, message, part)
			}
		})
	}
}

// A scenario also checks properties that the test does not mention.
func TestScenariosFindWhatAStoredAggregateCannotRelyOn(t *testing.T) {
	t.Parallel()

	deposit := Deposited{Currency: "EUR", Amount: 100}
	tests := map[string]struct {
		scenario func(t testing.TB)
		says     []string
	}{
		"an event that loses a field": {
			func(t testing.TB) { aggregatetest.Given(t, Counters, lossy{Kept: 1, Lost: 2}) },
			[]string{"Given: event 1, lossy.v1, does not survive its codec (-before +after)", "-   Lost: 2,\n+   Lost: 0,"},
		},
		"a produced event that loses a field": {
			func(t testing.TB) { aggregatetest.Given(t, Counters).When(count(lossy{Kept: 1, Lost: 2})) },
			[]string{"When 1 (after 0 events): produced event 1, lossy.v1, does not survive its codec"},
		},
		"an event whose number changes its type": {
			func(t testing.TB) { aggregatetest.Given(t, Counters, free{7}) },
			[]string{"free.v1, does not survive its codec", "- type of Free: int\n+ type of Free: json.Number"},
		},
		"an event that cannot be decoded": {
			func(t testing.TB) { aggregatetest.Given(t, Counters, oneWay{}) },
			[]string{`Given: event 1 does not survive its codec: malformed event "one-way.v1"`, "no way back"},
		},
		"a stored event that nobody reads": {
			func(t testing.TB) { aggregatetest.Given(t, Counters).Stored("old.v1", `{"a":1}`) },
			[]string{`Given: old.v1, in the history as {"a":1}, cannot be decoded: unknown event type "old.v1"`},
		},
		"a stored event that is malformed": {
			func(t testing.TB) { aggregatetest.Given(t, Counters).Stored("did.v1", "\x00") },
			[]string{`Given: did.v1, in the history as 00, cannot be decoded: malformed event`},
		},
		"a stored event that its upcaster refuses": {
			func(t testing.TB) {
				aggregatetest.Given(t, Counters.WithUpcasters(aggregate.Split("old.v1", func(struct{}) ([]did, error) { return nil, errFrozen }))).
					Stored("old.v1", "{}")
			},
			[]string{`upcast failed for event type "old.v1"`, errFrozen.Error()},
		},
		"an upcaster that is not deterministic": {
			func(t testing.TB) {
				aggregatetest.Given(t, Counters.WithUpcasters(aggregate.Upcast("old.v1", func(struct{}) kept { return kept{draw()} }))).
					Stored("old.v1", "{}")
			},
			[]string{"Given: applying the same events twice results in two states", "an upcaster only on the payload (-first +second)", "+   Kept: "},
		},
		"a stored event whose state a snapshot would lose": {
			func(t testing.TB) { aggregatetest.Given(t, Counters).Stored("did.v1", `{"What":"lose"}`) },
			[]string{"Given: the state does not survive its codec"},
		},
		"a stored event after a decision": {
			func(t testing.TB) { aggregatetest.Given(t, Counters).When(count()).Stored("did.v1", "{}") },
			[]string{"When 1 (after 0 events): Stored comes too late: put it before the first When"},
		},
		"an event that cannot be encoded": {
			func(t testing.TB) { aggregatetest.Given(t, Counters, free{func() {}}) },
			[]string{`Given: event 1: unencodable event "free.v1"`, "unsupported type: func()"},
		},
		"a state that loses a field": {
			func(t testing.TB) { aggregatetest.Given(t, Counters, did{"lose"}).When(count()) },
			[]string{"When 1 (after 1 event): the state does not survive its codec, so a snapshot would lose a part of it (-before +after)", "-   Lost:    1,\n+   Lost:    0,"},
		},
		"a state that loses a field at the last step": {
			func(t testing.TB) { aggregatetest.Given(t, Counters).When(count(did{"lose"})) },
			[]string{"When 1 (after 0 events): the state does not survive its codec, so a snapshot would lose a part of it (-before +after)", "-   Lost:    1,"},
		},
		"a state that cannot be encoded": {
			func(t testing.TB) { aggregatetest.Given(t, Counters, did{"spoil"}).When(count()) },
			[]string{"the state does not survive its codec, so a snapshot would lose it: json: unsupported type: func()"},
		},
		"an Apply that is not deterministic": {
			func(t testing.TB) { aggregatetest.Given(t, Counters, did{"draw"}).ThenState(Counter{}) },
			[]string{"Given: applying the same events twice results in two states", "+   Kept: ", "Apply must depend only on the state and the event"},
		},
		"a produced event whose Apply is not deterministic": {
			func(t testing.TB) { aggregatetest.Given(t, Counters).When(count(did{"draw"})) },
			[]string{"When 1 (after 0 events): applying the same events twice results in two states"},
		},
		"an Apply that tells nil from empty": {
			func(t testing.TB) { aggregatetest.Given(t, Counters, did{"empty"}).When(count(did{"look"})) },
			[]string{"When 1 (after 1 event): the events change a state from a snapshot in another way (-without +with the snapshot)", "-   Kept:    0,\n+   Kept:    99,"},
		},
		"a decision that tells nil from empty": {
			func(t testing.TB) {
				aggregatetest.Given(t, Counters, did{"empty"}).When(func(c Counter) (aggregate.Events[Counter], error) {
					if c.Omitted == nil {
						return nil, errFrozen
					}
					return nil, nil
				})
			},
			[]string{"on the same state from a snapshot the decision returns another result", "- the error \"<nil>\"\n+ the error \"the wallet is frozen\""},
		},
		"a decision with another event each time": {
			func(t testing.TB) {
				aggregatetest.Given(t, Wallets, deposit).When(func(Wallet) (aggregate.Events[Wallet], error) {
					return aggregate.Events[Wallet]{Withdrawn{"EUR", draw()}}, nil
				})
			},
			[]string{"When 1 (after 1 event): the decision is not pure", "+   Amount: ", "pass times, ids and the like as arguments"},
		},
		"a decision with another error each time": {
			func(t testing.TB) {
				aggregatetest.Given(t, Wallets).When(func(Wallet) (aggregate.Events[Wallet], error) {
					return nil, fmt.Errorf("attempt %d", draw())
				})
			},
			[]string{"the decision is not pure, it returns two results on the same state", "- the error \"attempt ", "+ the error \"attempt "},
		},
		"a decision that changes a map of the state": {
			func(t testing.TB) {
				aggregatetest.Given(t, Wallets, deposit).When(func(w Wallet) (aggregate.Events[Wallet], error) {
					w.Balances["EUR"] -= 30
					return aggregate.Events[Wallet]{Withdrawn{"EUR", 30}}, nil
				})
			},
			[]string{"the decision changed the state it was given: copy maps", "-   Balances: map[string]int{\"EUR\": 100},\n+   Balances: map[string]int{\"EUR\": 70},"},
		},
		"a decision that changes a slice of the state and refuses": {
			func(t testing.TB) {
				aggregatetest.Given(t, Wallets, &Noted{"a"}).When(func(w Wallet) (aggregate.Events[Wallet], error) {
					w.Notes[0] = "b"
					return nil, errFrozen
				}).ThenError(errFrozen)
			},
			[]string{"-   Notes:    []string{\"a\"},\n+   Notes:    []string{\"b\"},"},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			message := failure(t, test.scenario)
			for _, part := range test.says {
				assert.Contains(t, message, part)
			}
		})
	}
}

func TestDecisionMayChangeTheFieldsOfItsOwnCopy(t *testing.T) {
	t.Parallel()

	aggregatetest.Given(t, Wallets, Deposited{Currency: "EUR", Amount: 100}).
		When(func(w Wallet) (aggregate.Events[Wallet], error) {
			w.Balances = nil // it is a copy that nothing else uses
			return aggregate.Events[Wallet]{&Noted{strconv.Itoa(len(w.Balances))}}, nil
		}).
		Then(&Noted{"0"})
}

func TestScenarioDoesNothingAfterItsFirstFailure(t *testing.T) {
	t.Parallel()

	message := failure(t, func(t testing.TB) {
		untouched := func(Wallet) (aggregate.Events[Wallet], error) { panic("not reached") }
		aggregatetest.Given(t, Wallets).Then(&Noted{"a"}).
			When(untouched).Then().ThenNothing().ThenError(errFrozen).ThenError(nil).ThenState(Wallet{}).
			ThenErrorFunc(func(testing.TB, error) { panic("not reached") }).
			ThenStateFunc(func(testing.TB, Wallet) { panic("not reached") })
	})
	assert.Contains(t, message, "Then needs a When before it")
}

func TestScenarioPassesAPanicOn(t *testing.T) {
	t.Parallel()

	assert.PanicsWithValue(t, "a bug in the domain code", func() {
		aggregatetest.Given(t, Counters, did{"panic"}).ThenState(Counter{})
	})
}

// failure runs a scenario that must fail exactly once, and returns the failure that it reported.
func failure(t *testing.T, scenario func(testing.TB)) string {
	t.Helper()
	recorded := &recorder{TB: t}
	scenario(recorded)
	for _, cleanup := range recorded.cleanups {
		cleanup()
	}
	require.Len(t, recorded.failures, 1, "the scenario must fail, and once")
	return recorded.failures[0]
}

// recorder stands in for the t of a failing test. Its Fatal returns, so the scenario continues.
type recorder struct {
	testing.TB
	failures []string
	cleanups []func()
}

func (r *recorder) Helper()           {}
func (r *recorder) Cleanup(f func())  { r.cleanups = append(r.cleanups, f) }
func (r *recorder) Error(args ...any) { r.failures = append(r.failures, fmt.Sprint(args...)) }
func (r *recorder) Fatal(args ...any) { r.failures = append(r.failures, fmt.Sprint(args...)) }
func (r *recorder) Fatalf(format string, args ...any) {
	r.failures = append(r.failures, fmt.Sprintf(format, args...))
}
