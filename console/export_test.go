package console

import "time"

// Tails is how many topics the console follows.
func (c *Console) Tails() int {
	c.tails.mu.Lock()
	defer c.tails.mu.Unlock()
	return len(c.tails.byTopic)
}

// Pretty is JSON as pages show it.
func Pretty(data []byte) string { return pretty(data) }

// OrMore is a count as pages show it.
func OrMore(n int, more bool, one, many string) string { return orMore(n, more, one, many) }

// Changes returns the differences of two JSON documents as texts.
func Changes(before, after string) (list []string, more int) {
	all, more := changes([]byte(before), []byte(after))
	for _, c := range all {
		list = append(list, c.Path+": "+string(c.Before)+" -> "+string(c.After))
	}
	return list, more
}

// Rates computes the rate of one group.
type Rates struct{ rates rates }

// Handled returns the rate after a read of the lag. Events were written at some times, of which all
// since the first of them are known; nil: none is.
func (r *Rates) Handled(at time.Time, events uint64, known bool, written []time.Time) *float64 {
	var w *writing
	if written != nil {
		w = &writing{from: written[0], to: at, times: map[int][]time.Time{0: written[1:]}}
	}
	return r.rates.handled(rateKey{"mails", "cart", allShards}, lagAt{at, events, known}, w)
}
