// Package units counts the requests to DynamoDB that are made with a context, and the capacity
// units that they consume. Package journal exports it as CountUnits. It is a package of its own so
// that packages that package journal imports can count too.
package units
