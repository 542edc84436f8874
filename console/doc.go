// Package console is a web page for operators: it shows topics, aggregates with their events and
// states, consumer groups with what blocks them, read models and process managers, and acts on them
// if it is allowed to.
//
//	c, err := console.Handler(console.Config{App: app})
//	mux.Handle("/console/", c)         // under any path that ends with a slash
//	server.RegisterOnShutdown(c.Close) // ends the live tails
//
// Everybody who can send a request to the handler can read all events. Mount it behind the
// authentication that protects your other internal pages: docs/console.md has examples. The command
// `millrace console` serves it on the loopback interface, for any tables.
//
// # Reading
//
// Pages are rendered on the server, and need JavaScript only for what moves: live tails, refreshes
// and local times. They load nothing from other hosts. The page groups is also the JSON document
// api/groups, and so are the others; docs/console.md describes the fields.
//
// Each page shows how many read units it took. No page scans a table before somebody has asked for
// it. What a page reads is bounded by [Config.PageUnits]; what it has left out it says. Pages that
// refresh themselves stop while they are hidden, and one read is shared by all who look at the same
// time.
//
// # Acting
//
// Actions need [Config.AllowActions] and [Config.Authorize], which decides about each request. They
// are refused to other origins and without a token of the visitor's own page. Each attempt is logged
// with the name that Authorize returns.
//
// # Personal data
//
// [Config.HidePayloads] leaves out payloads, states, commands and metadata. [Config.Redact] changes
// them before they are shown. Payloads that the journal cannot decode are shown as encrypted.
package console
