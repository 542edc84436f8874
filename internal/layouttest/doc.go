// Package layouttest tests layouts of a journal. [Run] is the suite that every layout passes.
package layouttest
