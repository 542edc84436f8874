// Package stored tests that the current code reads what released versions have written. It has no
// exported identifiers.
//
// The folder testdata has a folder for each released version, and in it one for each layout of the
// journal. Such a folder is a fixture: what the version left when it ran a small application, the
// bank of this package. It contains:
//
//   - a file for each table, with the schema of the table and its items as DynamoDB JSON
//   - archive.jsonl, an archive of the journal (journal/archive)
//   - expected.json, what the version has written, and what its consumer groups have handled
//
// Files of more than 50 KB are compressed. Their names end in .gz.
//
// The tests load each fixture into an empty dynamotest, and open the application on it. They check
// that the aggregates have their states, and that command ids are remembered. They check that
// consumer groups, read models and process managers continue where they stopped. They also import
// the archive.
//
// # Add a fixture
//
// Each release adds a fixture, before its tag is set:
//
//	go test ./test/stored -stored.write v1.2.3
//
// This writes the fixture and then reads it. It refuses to write a version that exists. A fixture
// never changes after its tag was set. Until then, remove the folder and write it again whenever
// the stored format changes.
//
// # Change the application
//
// The application must be able to read all fixtures. So its events, states and reactions never
// change. When a release stores something new, add it to the application: another aggregate or
// group for example, and what the test needs to know about it to expected.json. Fixtures of earlier
// versions lack it, so the test must accept that.
package stored
