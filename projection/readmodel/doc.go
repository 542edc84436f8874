// Package readmodel rebuilds a read model while the old one serves queries. A [Model] has
// generations. A generation is one copy of the read model: it has its own consumer group and its
// own tables. Queries read the generation that serves.
//
//	m, err := readmodel.Open(ctx, client, readmodel.Config{
//		Name: "order-history", Journal: j, Topics: []string{"order", "delivery"},
//	})
//
//	// In each process that consumes: a consumer for each generation that is kept up to date.
//	go m.Run(ctx, func(ctx context.Context, g readmodel.Generation) error {
//		// Create the table g.Table("orders") if it is missing, subscribe as g.Group(),
//		// and project into the table until ctx ends.
//	})
//
//	// In each query:
//	g, err := m.Serving(ctx)
//	... query g.Table("orders")
//
//	// To rebuild the read model, in a tool or a deployment:
//	next, err := m.Begin(ctx)                // its consumers start, and read the history
//	err = m.CatchUp(ctx, next, report)       // waits until they are up to date
//	err = m.Switch(ctx, next)                // queries read it from now on
//	err = m.Rollback(ctx, next)              // or: the previous one serves again
//	err = m.Drop(ctx, old, groups.RemoveOptions{}) // stops its consumers and removes its group
//
// # Forms
//
// There are two reasons to rebuild a read model: its tables are wrong, or a release of the program
// needs other tables. In the second case a form names the contents of the tables, so that each
// release uses only the tables that it can write and read:
//
//	m, err := readmodel.Open(ctx, client, readmodel.Config{
//		Name: "order-history", Forms: []string{"1", "2"}, ...
//	})
//	go m.Run(ctx, func(ctx context.Context, g readmodel.Generation) error {
//		... project as g.Form says
//	})
//
// Begin stores the last of Forms with the generation. Programs of an earlier release, whose Forms
// are "1" alone, do not consume that generation, so they cannot write to the new tables in the old
// form. When it serves, their queries get a [*FormError] instead of wrong answers. So a rolling
// deployment has these steps: deploy the release that knows both forms, begin, catch up, and switch
// when no program of the earlier release answers queries. A later release can omit form "1" when
// the last generation of that form is dropped.
//
// A program that names no forms has the single form "". So it can start to use forms later, with
// Forms of "" and "2".
//
// # Stored state
//
// One item of a table ([CreateTable]) holds the generations with their forms, and which of them
// serves. Each change of it has the condition that it is unchanged since it was read, so two
// operators cannot undo each other's steps by accident. A switch is one write: every query sees one
// generation or the other, and after [Config].MaxAge all see the new one. Both are kept up to date
// until one is dropped, except while the group of one is paused or stopped ([Progress].Paused). So
// no query fails in between.
//
// # Operation
//
// A tool that is not one of the read model's programs opens it with [OpenExisting], which creates
// nothing and finds the topics by itself. [List] returns all read models of a table. `millrace
// model` is such a tool.
//
// # Cost
//
// [Model.Serving] costs a read unit for each [Config].MaxAge and process, [Model.Run] one for each
// [Config].Refresh, and a change a read unit and a write unit. While there are two generations,
// events are consumed and projected twice. [Model.Progress] costs as much as groups.Group.Lag for
// each topic, and [Model.Estimate] as much as groups.Group.Estimate. [Model.CatchUp] calls both
// repeatedly; see there.
package readmodel
