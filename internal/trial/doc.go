// Package trial keeps the events of an aggregate in memory, as the journal would store them, and
// makes the states on which the packages that test aggregates and process managers run the
// functions of a domain. A pure function returns the same on each of them, and changes none.
package trial
