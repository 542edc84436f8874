// Package rows decodes the replies to Query and BatchGetItem into rows, which are lists of
// attributes. The SDK allocates a map for each item and a value for each attribute, which is most
// of the cost of reading a history. Package rows uses the SDK's own parser through exported
// interfaces of the SDK. It reuses the memory of one row for the next. It decodes the rest of a
// reply as the SDK does.
//
// Its tests compare the results with the SDK's own decoding, so they fail if an update of the SDK
// changes it.
package rows
