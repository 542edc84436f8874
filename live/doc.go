// Package live pushes changes to clients: a browser that shows the result of a query gets the new
// result when the query's read model has changed, on whichever process the browser is connected to.
//
//	feed, err := live.New(live.Config{Journal: j, Group: "room-view", Topics: []string{"room"}})
//	go feed.Run(ctx)
//
//	mux.HandleFunc("GET /rooms/{id}/events", func(w http.ResponseWriter, r *http.Request) {
//		id := r.PathValue("id")
//		err := feed.Serve(w, r, id, func(ctx context.Context) (live.Event, error) {
//			room, err := queryRoom(ctx, id)
//			return live.Event{Name: "room", ID: room.Version, Data: room}, err
//		})
//		if err != nil {
//			http.Error(w, "no such room", http.StatusNotFound)
//		}
//	})
//
// In the browser:
//
//	new EventSource("/rooms/42/events").addEventListener("room", e => show(JSON.parse(e.data)))
//
// # How it works
//
// A consumer group maintains the read model, and each event is handled by one of its members. A
// [Feed] therefore has a subscription of its own, which observes the events of all processes
// (subscriber.Config.Broadcast). For each event it
//
//   - asks [Config].Hint, if there is one, whether anybody watches what the event concerns;
//   - waits until the read model has applied the event: [Config].Group, or [Config].Wait for a read
//     model whose positions are elsewhere, as in a SQL database;
//   - asks [Config].Key what the event concerns, by default the id of its aggregate;
//   - notifies the watchers of that key.
//
// [Feed.Serve] is a watcher that streams the result of a query as server-sent events. Use
// [Feed.Watch] for other protocols, such as WebSockets, and [Feed.Notify] for changes that are not
// events.
//
// # What a client gets
//
// A client gets states, not events. Several changes that come while a query runs, or while a client
// is slow, are one notification, and the next query returns them all. A client that was away gets
// the current state when it reconnects. So the memory of a watcher does not grow with the changes.
//
// Notifications reduce the latency only: Serve also repeats its query every
// [Config].RefreshInterval. So a client that has missed a change has it after that time at the
// latest. A change is missed if the read model is later than [Config].WaitTimeout, if Key fails, or
// if the journal's tail shows an event late (see subscriber.Config.TrailingDelay).
//
// # Late read models
//
// Up to subscriber.Config.MaxInFlight (64) waits run at once, each for at most WaitTimeout. Later
// events of the same aggregate queue behind its wait, in their order, in bounded memory. Events of
// other aggregates queue only while all of these waits are running, for example while the read
// model is down. An aggregate that stays late, for example because the group has parked it, takes
// the whole WaitTimeout once and a twentieth of it for later events.
//
// # Start and stop
//
// A stream may begin before Run observes events. It gets its first state at once, and is notified
// when Run has started. All streams end when Run returns or [Feed.Close] is called, and clients
// reconnect to another process. http.Server.Shutdown waits for streams and does not end them, so
// register Close with the server:
//
//	server.RegisterOnShutdown(func() { _ = feed.Close() })
//
// millrace.App.Live makes a feed that the App runs, and closes before its servers stop.
package live
