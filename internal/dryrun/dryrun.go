// Package dryrun passes to package processtest the methods of a process.Definition that run its
// reactions without a database. Programs do not need these methods, so package process does not
// export them.
package dryrun

// Of returns the methods of a process.Definition. Package processtest declares the interface that
// the result implements. Package process sets Of, since this package cannot import it.
var Of func(definition any) any
