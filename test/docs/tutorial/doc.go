// Package tutorial follows the tutorial as a reader does: its test pastes the files of each page
// into an empty module, runs the commands, and compares their output.
package tutorial
