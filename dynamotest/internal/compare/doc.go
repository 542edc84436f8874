// Package compare runs the same operations on two DynamoDBs and reports where their replies differ.
// It compares dynamotest with DynamoDB Local.
//
// A world consists of a few tables and a sequence of operations on them. One seed determines all of
// it, and replies have no influence. So a world can be run again. It can also be run with
// operations left out, until a difference has a short reproduction.
//
// Replies are compared as far as DynamoDB specifies them. Parts without a specified order are
// sorted first: the members of a set, the partitions of a scan, and the items of an index that
// share a sort key. Differences between DynamoDB Local and DynamoDB are listed in [Known].
package compare
