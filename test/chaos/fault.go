package chaos

// Fault is a mistake that members make on purpose, to show that the checks find it.
type Fault string

const (
	// NoFault means no mistake.
	NoFault Fault = ""
	// AckFirst makes members of the group "plain" ack before they record the message, so that a
	// kill in between loses it.
	AckFirst Fault = "ack-first"
	// Unfenced makes members of the group "projection" commit effects without the position, and ack
	// a little later, so that a kill in between repeats them.
	Unfenced Fault = "unfenced"
)
