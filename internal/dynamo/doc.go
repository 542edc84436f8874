// Package dynamo has what package journal and others do with a plain client of DynamoDB: they
// create tables, turn time to live on, and tell the SDK's errors apart.
package dynamo
