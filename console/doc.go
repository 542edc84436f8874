// Package console serves web pages for the operators of an application. They show topics,
// aggregates with their events and states, consumer groups with their lag and their blocked
// aggregates, read models and process managers. If actions are allowed, operators can also pause
// groups, retry events and so on.
//
//	c, err := console.New(console.Config{App: app})
//	if err != nil {
//		return err
//	}
//	mux.Handle("/console/", c)         // under any path that ends with a slash
//	server.RegisterOnShutdown(c.Close) // ends the live tails
//
// Every client that can send a request to the handler can read all events. Mount it behind the
// authentication of your other internal pages: docs/operations/console.md has examples. The command
// `millrace console` serves it on the loopback interface, for any tables.
//
// # Reading
//
// Pages are rendered on the server. They need JavaScript only for live tails, refreshes and local
// times, and load nothing from other hosts. Each page is also a JSON document under api: the
// document of the page groups is api/groups. docs/reference/console-json.md describes the
// fields.
//
// Each page shows how many read units it took. No page scans a table unless the visitor asks for
// it. [Config].PageUnits limits the read units of a page, and the page lists the parts that it has
// left out. Pages do not refresh themselves while they are hidden. Visitors who look at the same
// page at the same time share one read.
//
// # Acting
//
// Actions need Config.AllowActions, Config.Logger and Config.Authorize. Authorize decides about
// each action. A form is refused if it comes from another origin, or if it does not have the token
// of a page that this visitor has opened. Each action is logged with its outcome and the name that
// Authorize returns, also if it was refused.
//
// # Personal data
//
// Config.HidePayloads leaves out payloads, states, commands and metadata. Config.Redact changes
// them before they are shown. For payloads that the journal cannot decode, pages show the reason.
package console
