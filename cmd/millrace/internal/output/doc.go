// Package output prints the results of commands. [Rows] prints a table for people, or lines of JSON
// for programs. [Progress] shows the progress of a long operation.
package output
