package aggregate

// AnyDefinition is a [Definition] of whatever state, for those who read stored events and have no
// state: projections and process managers.
type AnyDefinition interface {
	Type() string
	Codec() Codec
	Upcast(stored EncodedEvent) ([]EncodedEvent, error)
	Validate() error
}
