package console

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
