// Package tutorial follows the tutorial and the how-tos as a reader does. The test of the tutorial
// pastes the files of each page into an empty module, runs the commands, and compares their output.
// The test of the how-tos runs their commands on the example shop.
package tutorial
