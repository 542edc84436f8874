// Package conformance contains tests of what DynamoDB does on AWS. Their cases follow what the AWS
// documentation and the tests of ScyllaDB's Alternator state about it.
//
// The tests run on dynamotest, and on DynamoDB Local if the environment names one. A case where
// DynamoDB Local differs from AWS is marked with what it does instead. It fails there if the mark
// is not needed.
package conformance
