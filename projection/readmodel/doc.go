// Package readmodel rebuilds a read model while the old one serves. A [Model] has generations. Each
// has a consumer group and tables of its own, and queries read one of them.
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
//	// to rebuild it, by an operator or a deployment
//	next, err := m.Begin(ctx)                // its consumers start, and read history
//	err = m.CatchUp(ctx, next, report)       // waits until they are up to date
//	err = m.Switch(ctx, next)                // queries read it from now on
//	err = m.Rollback(ctx, next)              // or the one before again, which has been kept up to date
//	err = m.Drop(ctx, old, groups.Removal{}) // its consumers stop, and its group is removed; its tables can be deleted then
//
// # Forms
//
// A read model is rebuilt because its tables are wrong, or because a release of the program wants
// other tables. In the second case a form names what the tables contain, so that each release uses
// only the tables that it can write and read:
//
//	m, err := readmodel.Open(ctx, client, readmodel.Config{Name: "order-history", Forms: []string{"1", "2"}, ...})
//	go m.Run(ctx, func(ctx context.Context, g readmodel.Generation) error {
//		... project as g.Form says
//	})
//
// Begin stores the last of Forms with the generation. Programs of an earlier release, whose Forms
// are "1" alone, do not consume that generation, so they cannot write to the new tables in the old
// form. When it serves, their queries get a [*FormError] instead of wrong answers. So in a rolling
// deployment: deploy the release that knows both forms, begin, catch up, and switch when no program
// of the earlier release answers queries. A later release can leave out form "1" when the last
// generation of that form is dropped.
//
// A program that names no forms has one, "". So it can start to use forms later, with Forms of ""
// and "2".
//
// # What is kept
//
// One item of a table ([CreateTable]) holds the generations with their forms, and which one serves.
// Each change of it is conditional on what was read, so two operators cannot undo each other's
// steps by accident. A switch is one write: every query sees one generation or the other, and after
// [Config].MaxAge all see the new one. Both are kept up to date until one is dropped, except while
// the group of one is paused or stopped ([Progress].Paused). So no query fails in between.
//
// # To operate it
//
// A tool that is not one of the read model's programs opens it with [OpenExisting], which creates
// nothing and finds the topics by itself. [List] returns all read models of a table. `millrace
// model` is such a tool.
//
// # Cost
//
// [Model.Serving] costs a read unit for each [Config].MaxAge and process, [Model.Run] one for each
// [Config].Refresh, and a change a read unit and a write unit. While there are two generations,
// events are consumed and projected twice. [Model.Progress] costs what groups.Groups.Lag does, for
// each topic, and [Model.Estimate] what groups.Groups.Estimate does. [Model.CatchUp] documents how
// often it calls which.
package readmodel
