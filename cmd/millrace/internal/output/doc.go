// Package output prints what the commands have found: [Rows] as a table for people or as lines of
// JSON for programs, and [Progress] of long work.
package output
