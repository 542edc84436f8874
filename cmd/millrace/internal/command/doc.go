// Package command is the command line: what each command takes, does and prints, and how it exits.
//
// [Run] is the whole program. All that it talks to comes from an [Env], so that a test runs it as a
// person would.
package command
