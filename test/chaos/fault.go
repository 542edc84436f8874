package chaos

// Fault is a mistake that members make on purpose, to show that it would be found.
type Fault string

const (
	// NoFault is how it should be.
	NoFault Fault = ""
	// AckFirst has members of the group "plain" ack before they note what they got, so that a kill
	// between the two loses it.
	AckFirst Fault = "ack-first"
	// Unfenced has members of the group "projection" commit effects without the position, and ack a
	// little later, so that a kill between the two doubles them.
	Unfenced Fault = "unfenced"
)
