// Package catalogue documents the events of an application, and finds changes that break readers of
// stored events. It reads the definitions of aggregates, without generated code.
//
//	notes, err := catalogue.Write("docs/events", catalogue.Config{
//		Title:       "Shop",
//		Definitions: []aggregate.AnyDefinition{orders.Definition, payments.Definition},
//	})
//
// It writes a JSON Schema of each event and state, an AsyncAPI document and Markdown pages; see
// [Catalogue.Files]. Commit them, and let a test compare them with the code: package cataloguetest.
//
// # Schemas
//
// The schemas describe what encoding/json writes for the Go types. A tag description:"..." of a
// field is its description. [Config].As describes types that encode themselves.
//
// Decoding in Go requires no field: a missing field keeps its zero value. So a field is required in
// a schema if each event that the current program writes has it, and it is not null. A field is
// optional if it has omitempty or omitzero in its tag, if it is a pointer, map, slice or interface,
// or if it is in an embedded pointer.
//
// The schema of a Protocol Buffers message has the keyword x-protobuf, with the name of the message
// and the numbers, names and types of its fields. For other codecs the catalogue only names the
// codec. It describes events as the codec of the definition encodes them, before encryption,
// compression and repository.Config.EventPayload.
//
// # Compatibility
//
// [Catalogue.Compare] and [Write] compare the catalogue with the committed files. These changes are
// incompatible:
//
//   - A field is removed, renamed, or has another type. Larger integers are compatible.
//   - A required field is added, or a field becomes required: stored events lack it.
//   - A field no longer allows null.
//   - An event type is removed, and no upcaster reads it. An upcaster is removed.
//   - An upcaster reads a field that stored events lack, or reads it as another type or by another
//     codec. An upcaster may ignore fields. A type that it shares with a current event may have
//     new optional fields.
//   - An upcaster returns a type of its own, which is read in another way.
//   - The codec of an event type changes.
//   - Fields of a Protocol Buffers message become alternatives of one oneof. A number of an
//     enumeration is removed, or gets the name of another one.
//   - A message of a [Channel] changes, except for optional fields, also to larger integers, or is
//     removed without a later version. Its address changes.
//
// The file of an event type that programs no longer write keeps the schema of the stored events,
// with the keyword x-stored, beside the schema of what the upcaster reads. Each comparison uses it,
// also after the upcaster has changed. If the first catalogue already had the upcaster, only the
// fields are known that upcasters have read since.
//
// New optional fields, event types, upcasters and versions of messages are compatible. So is a
// change of a state, since loads can replay the events: the comparison notes that
// repository.Config.SnapshotSchema must increase. It also notes fields that an upcaster no longer
// reads.
package catalogue
