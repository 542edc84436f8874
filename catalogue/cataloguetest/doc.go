// Package cataloguetest compares the events of an application with the catalogue that is committed
// beside its code:
//
//	func TestTheCatalogueIsUpToDate(t *testing.T) {
//		cataloguetest.Check(t, "events", Catalogue)
//	}
//
// The test fails if a change breaks readers of stored events, or consumers. Package catalogue lists
// these changes. It also fails after a compatible change, until the files are written again:
//
//	go test ./events -run TestTheCatalogueIsUpToDate -catalogue.update
//
// This command fails once if there are notes, after it has written the files.
package cataloguetest
