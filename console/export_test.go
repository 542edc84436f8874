package console

// Tails is how many topics the console follows.
func (c *Console) Tails() int {
	c.tails.mu.Lock()
	defer c.tails.mu.Unlock()
	return len(c.tails.byTopic)
}

// Pretty is JSON as pages show it.
func Pretty(data []byte) string { return pretty(data) }
