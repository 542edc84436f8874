package subscriber

// WithIdleStreams is a config whose shards remember few aggregates that have nothing to do.
func WithIdleStreams(c Config, n int) Config {
	c.idleStreams = n
	return c
}
