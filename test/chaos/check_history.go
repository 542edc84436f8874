package chaos

import (
	"fmt"
	"strings"
)

// checkAcknowledged finds events that were acknowledged to writers and are not in the journal.
func checkAcknowledged(have history, acknowledged map[place]uint64) (findings []Finding) {
	for at, token := range acknowledged {
		events := have[at.thing]
		if at.number == 0 || at.number > uint64(len(events)) || events[at.number-1].Token != token {
			findings = append(findings, Finding{Lost, fmt.Sprintf(
				"the commit of event %d of %s (token %x) was acknowledged, and the journal does not have it", at.number, at.thing, token)})
		}
	}
	return findings
}

// checkAcked finds events that were never acked, and lines about events that were not written.
func checkAcked(file string, lines []entry, want history) (findings []Finding) {
	acked := placesOf(lines, ack)
	for i, e := range lines {
		if e.Thing == "" {
			continue
		}
		events := want[e.Thing]
		if e.Number == 0 || e.Number > uint64(len(events)) || events[e.Number-1].Token != e.Token {
			findings = append(findings, Finding{Lost, fmt.Sprintf(
				"%s:%d: event %d of %s has token %x, which is not what was written", file, i+1, e.Number, e.Thing, e.Token)})
		}
	}
	for thing, events := range want {
		for i := range events {
			if !acked[place{thing, uint64(i) + 1}] { //nolint:gosec // an index
				findings = append(findings, Finding{Lost, fmt.Sprintf("%s: event %d of %s was never acked", file, i+1, thing)})
			}
		}
	}
	return findings
}

// placesOf returns the events with a line of a kind.
func placesOf(lines []entry, k kind) map[place]bool {
	places := map[place]bool{}
	for _, e := range lines {
		if e.Kind == k {
			places[place{e.Thing, e.Number}] = true
		}
	}
	return places
}

// hasAll reports whether all events are among some places.
func hasAll(places map[place]bool, want history) bool {
	for thing, events := range want {
		for i := range events {
			if !places[place{thing, uint64(i) + 1}] { //nolint:gosec // an index
				return false
			}
		}
	}
	return true
}

// checkEffects compares a read model with the expected one.
func checkEffects(have readModel, want history) (findings []Finding) {
	wrong := func(format string, args ...any) {
		findings = append(findings, Finding{Effects, fmt.Sprintf(format, args...)})
	}
	totals := map[string]sums{}
	rows := map[string]bool{}
	for thing, events := range want {
		row := thingRow(thing)
		rows[row] = true
		var list []string
		total := totals[counterRow(thing)]
		for i, e := range events {
			list = append(list, effect(uint64(i)+1, e.Token)) //nolint:gosec // an index
			total = sums{total.Events + 1, total.Amount + e.Amount}
		}
		totals[counterRow(thing)] = total
		if at, same := firstDifference(have.applied[row], list); !same {
			wrong("row %q of table %s: from item %d on the list is %s, but the events lead to %s",
				row, effectsTable, at+1, excerpt(have.applied[row], at), excerpt(list, at))
		}
	}
	for row, total := range totals {
		if have.sums[row] != total {
			wrong("row %q of table %s: %+v, but the events lead to %+v", row, effectsTable, have.sums[row], total)
		}
	}
	for row := range have.applied {
		if !rows[row] {
			wrong("row %q of table %s: there is no such aggregate", row, effectsTable)
		}
	}
	return findings
}

func firstDifference(a, b []string) (at int, same bool) {
	for at < len(a) && at < len(b) && a[at] == b[at] {
		at++
	}
	return at, at == len(a) && at == len(b)
}

// excerpt shows a few items of a list.
func excerpt(list []string, from int) string {
	if from >= len(list) {
		return "at its end"
	}
	return strings.Join(list[from:min(len(list), from+4)], " ") + " ..."
}
