package journal

// Engine is for tests, which compare it with the interface of package eventlog.
type Engine = engine

// engineOf returns an engine without a client, for functions that make no requests.
func engineOf(config Config) *engine {
	config.setDefaults()
	j := &engine{store: &store{config: config}}
	j.use(config.Layout)
	return j
}

// packedOf returns the layout of an engine whose layout is packed.
func packedOf(j *engine) *packed { return j.layout.(*packed) }

// classicOf returns the layout of an engine whose layout is classic.
func classicOf(j *engine) *classic { return j.layout.(*classic) }
