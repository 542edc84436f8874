package aggregate

// AnyDefinition is a [Definition] of any state type. Projections, process managers and subscribers
// take it, since they read stored events and have no state.
type AnyDefinition interface {
	Type() string
	Codec() Codec
	Upcasts(eventType string) bool
	Splits() bool
	Upcast(stored EncodedEvent) ([]EncodedEvent, error)
	Validate() error
}
