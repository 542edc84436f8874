// Package trial keeps the events of an aggregate in memory in the form in which the journal stores
// them. It makes the states on which the packages that test aggregates and process managers run
// domain functions. A pure function returns the same result for equal states, and does not change
// them.
package trial
