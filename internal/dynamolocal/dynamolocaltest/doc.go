// Package dynamolocaltest provides an empty database of a DynamoDB Local for each test.
//
//	func TestAppendIsAtomic(t *testing.T) {
//		client := dynamolocaltest.Client(t)
//		...
//	}
//
// Most tests use package testdb, which provides dynamotest if there is no DynamoDB Local.
//
// This package starts nothing, because each test binary would then start an emulator. `make test`
// starts one for all of them and names it in the environment. Without it a test is skipped. The
// command test/cmd/check names skipped tests, and CI lets none be skipped.
package dynamolocaltest
