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
//	next, err := m.Begin(ctx)                // its consumers start, and read history
//	err = m.CatchUp(ctx, next, report)       // waits until it has
//	err = m.Switch(ctx, next)                // queries read it from now on
//	err = m.Rollback(ctx, next)              // or the one before again, which has been kept up to date
//	err = m.Drop(ctx, old, groups.Removal{}) // its consumers stop, and its group is removed; its tables can be deleted then
//
// # Forms
//
// A read model is built anew because its tables are wrong, or because a release of the program wants other tables. Then a form tells old tables from
// new ones, and who can write and read which:
//
//	m, err := readmodel.Open(ctx, client, readmodel.Config{Name: "order-history", Forms: []string{"1", "2"}, ...})
//	go m.Run(ctx, func(ctx context.Context, g readmodel.Generation) error {
//		... project as g.Form says
//	})
//
// Begin stores the last form with the generation. Programs of an earlier release, whose Forms are "1" alone, do not consume it, so they cannot write to the new tables in
// the old form; and when it serves their queries get an [*FormError], and no wrong answers. So in a rolling deployment: deploy the release that knows both forms, begin,
// catch up, and switch when no program of the earlier release answers queries. A later release can give up form "1" when its last generation is dropped.
//
// A program that names no forms has one, "", so forms can be taken up later: with Forms of "" and "2".
//
// # What is kept
//
// One item of a table ([CreateTable]) says which generations there are, of which form, and which one serves. Each change of it is conditional on what was seen, so two
// operators cannot undo each other's steps unnoticed. A switch is one write: every query sees either generation, and [Config].MaxAge later all see the new one. Both
// are up to date and stay so until one is dropped, unless the group of one is paused or stopped ([Progress].Paused), so no query fails in between.
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
// groups.Groups.Estimate does. [Model.CatchUp] says how often it makes which.
package readmodel
