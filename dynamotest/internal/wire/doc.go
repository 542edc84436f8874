// Package wire is the JSON of DynamoDB's protocol: request bodies become the SDK's inputs, and its
// outputs and errors become bodies.
//
// The names on the wire are the names of the fields, so the SDK's structs are read and written by
// reflection and no shape is declared again. Attribute values, most of what travels, have code of
// their own.
//
// What DynamoDB answers to bodies that the protocol does not allow is taken from the service where
// it is known: DynamoDB Local takes some of them (a number for a string) and answers others with an
// internal failure. Unlike both, [Decode] refuses parameters it does not know.
package wire
