// Package readmodel builds a read model anew while the old one serves. A [Model] is kept in generations: each has a consumer group and
// tables of its own, and one of them is what queries read.
//
//	m, err := readmodel.Open(ctx, client, readmodel.Config{Name: "order-history", Journal: j, Topics: []string{"order", "delivery"}})
//
//	// in every process that consumes: a consumer for each generation that is kept up to date
//	go m.Run(ctx, func(ctx context.Context, g readmodel.Generation) error {
//		// make the table g.Table("orders") if it is missing, subscribe as g.Group(), project into the table, until ctx ends
//	})
//
//	// in every query
//	g, err := m.Serving(ctx)
//	... query g.Table("orders")
//
//	// to build it anew, by an operator or a deployment
//	next, err := m.Begin(ctx)            // its consumers start, and read history
//	err = m.CatchUp(ctx, next, report)   // waits until it has
//	err = m.Switch(ctx, next)            // queries read it from now on
//	err = m.Rollback(ctx, next)          // or the one before again, which has been kept up to date
//	err = m.Drop(ctx, old)               // its consumers stop, and its group is removed; its tables can be deleted then
//
// The program that is deployed with a new form of the read model tells by the generation's number which form it has: Begin gives numbers one after the
// other.
//
// # What is kept
//
// One item of a table ([CreateTable]) says which generations there are and which one serves. Each change of it is conditional on what was seen, so two
// operators cannot undo each other's steps unnoticed. A switch is one write: every query sees either generation, and [Config].MaxAge later all see the new one. Both
// are up to date and stay so until one is dropped, so no query fails in between.
//
// # To operate it
//
// A tool that is none of the read model's programs opens it with [OpenExisting], which makes nothing and finds out the topics; [List]
// gives all that a table has. `millrace model` is such a tool.
//
// # Cost
//
// [Model.Serving] costs a read unit each [Config].MaxAge and process, [Model.Run] one each [Config].Refresh, a change a read and a write unit. While two
// generations live, events are consumed and projected twice. [Model.Progress] costs what groups.Groups.Lag does, for each topic; [Model.Estimate] what
// groups.Groups.Estimate does.
package readmodel
