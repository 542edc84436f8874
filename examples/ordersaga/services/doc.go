// Package services are the aggregates of the example that each do one part of an order, and know
// nothing of the others: customers with their credit, the kitchen's tickets, the payments and the
// orders. Each takes commands and answers by events.
//
// A command may come late, or after the one that undoes it: commands of different types travel on
// different topics. So what undoes something is remembered, and what it undoes is refused when it
// comes afterwards.
package services
