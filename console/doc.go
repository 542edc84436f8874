// Package console serves a web page for operators. It shows topics, aggregates with their events
// and states, consumer groups with what blocks them, read models and process managers. If actions
// are allowed, operators can also pause groups, retry events and so on.
//
//	c, err := console.Handler(console.Config{App: app})
//	mux.Handle("/console/", c)         // under any path that ends with a slash
//	server.RegisterOnShutdown(c.Close) // ends the live tails
//
// Everybody who can send a request to the handler can read all events. Mount it behind the
// authentication that protects your other internal pages: docs/operations/console.md has examples. The command
// `millrace console` serves it on the loopback interface, for any tables.
//
// # Reading
//
// Pages are rendered on the server. They need JavaScript only for live tails, refreshes and local
// times, and load nothing from other hosts. Each page is also a JSON document under api: the page
// groups is api/groups. docs/operations/console.md describes the fields.
//
// Each page shows how many read units it took. No page scans a table unless the visitor asks for
// it. [Config.PageUnits] bounds what a page reads, and the page says what it has left out. Pages
// that refresh themselves stop while they are hidden. Visitors who look at the same page at the
// same time share one read.
//
// # Acting
//
// Actions need [Config.AllowActions], [Config.Logger], and [Config.Authorize], which decides about
// each request. A form is refused if it comes from another origin, or without the token of a page
// that this visitor has opened. Each action is logged with its outcome and the name that Authorize
// returns, also if it was refused.
//
// # Personal data
//
// [Config.HidePayloads] leaves out payloads, states, commands and metadata. [Config.Redact] changes
// them before they are shown. Payloads that the journal cannot decode are shown as encrypted.
package console
