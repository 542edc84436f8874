// Package dynamolocaltest lends each test an empty database of a DynamoDB Local.
//
//	func TestAppendIsAtomic(t *testing.T) {
//		client := dynamolocaltest.Client(t)
//		...
//	}
//
// Most tests take testdb instead, which gives dynamotest where there is no DynamoDB Local.
//
// It starts nothing: a test binary a package would mean an emulator a package. `make test` starts
// one for all of them and names it in the environment. Without it a test fails, so that no run
// passes by leaving out what it was for; `go test -short` is the way to leave it out knowingly.
package dynamolocaltest
