// Package command is the command line: what each command takes, does and prints, and how it exits.
//
// [Run] is the whole program. It reaches everything outside through an [Env], so a test can run it
// as a user does.
package command
