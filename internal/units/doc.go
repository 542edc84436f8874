// Package units counts the requests to DynamoDB that are made with a context, and the capacity
// units that they consume. It exists beside package journal, which exports it as CountUnits, so
// that packages that package journal imports can count too.
package units
