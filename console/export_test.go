package console

import "time"

// Tails returns the number of topics that the console follows.
func (c *Console) Tails() int {
	c.tails.mu.Lock()
	defer c.tails.mu.Unlock()
	return len(c.tails.byTopic)
}

// Pretty returns JSON in the format of pages.
func Pretty(data []byte) string { return pretty(data) }

// OrMore returns a count in the format of pages.
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

// Handled returns the rate after a read of the lag. written has the times of all events since the
// first of these times; nil means that no times are known.
func (r *Rates) Handled(at time.Time, events uint64, known bool, written []time.Time) *float64 {
	var w *writing
	if written != nil {
		w = &writing{from: written[0], to: at, times: map[int][]time.Time{0: written[1:]}}
	}
	return r.rates.handled(rateKey{"mails", "cart", allShards}, lagAt{at, events, known}, w)
}
