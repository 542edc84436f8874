// Package protobuf encodes events and states that are Protocol Buffers messages.
//
//	var Accounts = aggregate.Define[Account]("account", Deposited{}, &bankpb.Closed{}).
//		WithCodec(protobuf.Codec{})
//
// The codec writes two forms of Go types as messages. It passes every other type to [Codec.Other],
// which is JSON by default, so that a state can be a plain struct while its events are messages.
//
// The first form is a wrapper: a struct that embeds a pointer to a generated message and has no
// other field. Use it for messages of another package, since methods cannot be added to them. It
// may be defined as a value or as a pointer, and the fields of the message are fields of the
// wrapper:
//
//	type Deposited struct{ *bankpb.Deposited }
//
//	func (Deposited) EventType() string  { return "account.deposited.v2" }
//	func (e Deposited) Apply(a *Account) { a.Balances[e.Currency] += e.Amount }
//
// The second form is a pointer to a generated message. The package of the message then declares the
// methods EventType and Apply, in a file beside the generated one.
//
// # States
//
// A state is passed by value, and generated messages must not be copied by value; go vet reports a
// decision that takes one. So a state is a plain struct, which [Codec.Other] writes, or a wrapper.
// A plain struct with a message in a field does not work, because JSON cannot write messages.
// [aggregate.Definition.Validate] reports it. The message of a wrapper is nil before the first
// event. After a load each empty map in the message is nil too. So Apply methods begin with two
// checks:
//
//	type Account struct{ *bankpb.Account }
//
//	func (e Deposited) Apply(a *Account) {
//		if a.Account == nil {
//			a.Account = &bankpb.Account{}
//		}
//		if a.Balances == nil {
//			a.Balances = map[string]int64{}
//		}
//		...
//	}
//
// # Stored form
//
// The codec writes the binary form, which is deterministic for one version of the protobuf module.
// It does not contain the type of the message, since the name of the event type identifies it. A
// message without content has zero bytes, which DynamoDB accepts. Nil is written like a message
// without content and is read as one. Nil and empty maps and lists are the same.
//
// The message keeps fields that the Go type lacks, because a newer program wrote them, and writes
// them again. The binary form has no end mark: bytes after a message are an error, unless they
// happen to be valid fields. Such fields cannot be distinguished from those of a newer program.
//
// # Evolution
//
// The rules of Protocol Buffers allow fields to be added and removed while numbers keep their
// meaning. The event type keeps its name then. Any other change needs a new name and an upcaster.
// The old and new types of [aggregate.Upcast] may be wrappers or pointers to messages. Read events
// that were JSON before with [aggregate.Upcaster.WithCodec].
package protobuf
