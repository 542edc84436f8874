// Package bankpb holds generated messages of a bank account, for the tests and examples of package
// protobuf.
package bankpb

//go:generate protoc --go_out=. --go_opt=paths=source_relative bank.proto
