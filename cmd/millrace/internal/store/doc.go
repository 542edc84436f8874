// Package store finds the DynamoDB that the command works on, and opens the journal that is in it.
//
// A [Target] is where: AWS by its usual configuration, or a DynamoDB Local by its URL. [Open] takes
// from the tables what an application has to say in its configuration: shard count, key resolver,
// layout, the names of attributes and indexes.
package store
