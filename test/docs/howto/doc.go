// Package howto tests the programs of the how-to pages. Each has a folder of its own.
package howto
