package aggregate

// AnyDefinition is a [Definition] of whatever state, for those who read stored events and have no
// state: projections, process managers and subscribers.
type AnyDefinition interface {
	Type() string
	Codec() Codec
	Upcasts(eventType string) bool
	Upcast(stored EncodedEvent) ([]EncodedEvent, error)
	Validate() error
}
