// Package compare runs the same operations on two DynamoDBs and reports where their replies differ.
// It is how dynamotest is held against DynamoDB Local.
//
// A world is a few tables and a sequence of operations on them, all of it drawn from one seed: what
// either side replied has no part in it. That is what lets a world be run again, and be run with
// operations left out until a difference has a short reproduction.
//
// Replies are compared for what DynamoDB promises. What it leaves open is brought into one order
// first: the members of a set, the partitions of a scan, the items of an index that share a sort
// key. What only differs because DynamoDB Local is not DynamoDB is listed in [Known].
package compare
