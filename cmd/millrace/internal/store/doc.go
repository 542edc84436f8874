// Package store connects to DynamoDB, and opens the journal.
//
// A [Target] is AWS with its usual configuration, or a DynamoDB Local with its URL. [Open] reads
// the settings from the tables that an application has in its configuration: shard count, key
// resolver, layout, names of attributes and indexes.
package store
