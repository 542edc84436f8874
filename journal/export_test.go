package journal

// engineOf returns an engine without a client, for functions that make no requests.
func engineOf(config Config) *engine {
	config.setDefaults()
	return newEngine(nil, config.settings(), layouts)
}

// packedOf returns the layout of an engine whose layout is packed.
func packedOf(j *engine) *packed { return j.layout.(*packed) }

// classicOf returns the layout of an engine whose layout is classic.
func classicOf(j *engine) *classic { return j.layout.(*classic) }

// Engine is the type of Journal.Internal.
type Engine = engine
