// Package services has the aggregates of the example. Each of them does one part of an order and
// does not know the others: customers with their credit, the kitchen's tickets, the payments and
// the orders. Each executes commands and replies with events.
//
// A command may be late, or arrive after the command that undoes it, because commands of different
// types use different topics. So an aggregate remembers an undo, and refuses the original command
// if it arrives later.
package services
