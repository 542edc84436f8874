// Package protobuf is a codec for aggregates whose events, or state, are Protocol Buffers messages.
//
//	var Accounts = aggregate.Define[Account]("account", Deposited{}, &bankpb.Closed{}).WithCodec(protobuf.Codec{})
//
// Two forms of Go types are written as messages; every other type goes to [Codec.Other], which is
// JSON by default, so that a state can be a plain struct while its events are messages.
//
// A wrapper is a struct that embeds a pointer to a generated message and has no other field. It is
// the form for messages of another package, since methods cannot be added to them there. It may be
// defined as a value or as a pointer, and the fields of the message are fields of the wrapper:
//
//	type Deposited struct{ *bankpb.Deposited }
//
//	func (Deposited) EventType() string  { return "account.deposited.v2" }
//	func (e Deposited) Apply(a *Account) { a.Balances[e.Currency] += e.Amount }
//
// A pointer to a generated message is the other form. Its package then has the methods EventType
// and Apply too, in a file beside the generated one.
//
// # States
//
// A state is passed by value, and generated messages must not be copied by value; go vet says so
// where a decision takes one. So a state is a plain struct, which [Codec.Other] writes, or a
// wrapper. (JSON cannot write messages in the fields of a plain struct, and
// [aggregate.Definition.Validate] says so.) The message of a wrapper is nil before the first event,
// and so is each empty map in it after it was read, so Apply methods begin with the two:
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
// # What is stored
//
// The binary form, deterministic for one version of the protobuf module, without a mark of the
// message's type: the name of the event type tells that. A message without content has zero bytes,
// which DynamoDB takes. Nil is written like a message without content and read as one; nil and
// empty maps and lists are the same.
//
// Fields that the Go type lacks, since a newer program wrote them, are kept in the message and
// written again with it. The binary form has no end mark: bytes after a message are an error unless
// they happen to be fields, which cannot be told from those of a newer program.
//
// # Evolution
//
// The rules of Protocol Buffers let fields come and go while numbers keep their meaning; such an
// event type keeps its name. Whatever else changes gets a new name and an upcaster; old and new
// types of [aggregate.Upcast] may be wrappers or pointers to messages. Events that were JSON before
// are read with [aggregate.Upcaster.WithCodec].
package protobuf
