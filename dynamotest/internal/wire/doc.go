// Package wire implements the JSON of DynamoDB's protocol. It decodes request bodies to the SDK's
// inputs, and encodes outputs and errors to bodies.
//
// The names in JSON are the names of the SDK's fields. So structs are read and written by
// reflection, and no shape is declared again. Attribute values are most of the data and have their
// own code.
//
// For invalid bodies the errors are those of the service, as far as they are known. DynamoDB Local
// accepts some of these bodies (a number for a string), and answers others with an internal
// failure. Unlike both, [Decode] refuses unknown parameters.
package wire
