// Package live pushes changes of read models to clients, such as browsers. A client that shows the
// result of a query receives the new result when the read model has changed. The client may be
// connected to any process.
//
//	feed, err := live.New(live.Config{Journal: j, Group: "room-view", Topics: []string{"room"}})
//	go feed.Run(ctx)
//
//	mux.HandleFunc("GET /rooms/{id}/events", func(w http.ResponseWriter, r *http.Request) {
//		id := r.PathValue("id")
//		err := feed.Serve(w, r, id, func(ctx context.Context) (live.Update, error) {
//			room, err := queryRoom(ctx, id)
//			return live.Update{Name: "room", ID: room.Version, Data: room}, err
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
// A consumer group maintains the read model. Each event is handled by one member of the group, in
// one process. So a [Feed] has its own subscription, which observes all events in every process
// (subscriber.NewBroadcast). A watcher is a stream or another receiver of notifications for a
// key. For each event the feed
//
//   - calls [Config].Hint, if it is set, and skips the event if its key has no watchers;
//   - waits until the read model has applied the event, by [Config].Group, or by [Config].Wait for
//     a read model with external positions, such as an SQL database;
//   - calls [Config].Key for the key of the event, by default the id of its aggregate;
//   - notifies the watchers of that key.
//
// [Feed.Serve] streams the result of a query as server-sent events, and is a watcher. Use
// [Feed.Watch] for other protocols, such as WebSockets. Use [Feed.Notify] for changes that are not
// events.
//
// # What a client receives
//
// A client receives states, not events. Several changes while a query runs, or while a client is
// slow, become one notification, and the next query returns all of them. A client that reconnects
// receives the current state. So the memory of a watcher does not grow with the number of changes.
//
// A client can miss a notification: if the read model applies an event later than
// [Config].WaitTimeout, if Key fails, or if the journal's tail shows an event late (see
// subscriber.BroadcastConfig.Timing). Since Serve also repeats its query every
// [Config].RefreshInterval, the client receives the change after that time at the latest.
//
// # Late read models
//
// Up to subscriber.BroadcastConfig.MaxInFlight (64) waits run at once, each for at most
// WaitTimeout. Later events of the same aggregate wait in a queue, in order and in bounded memory.
// Events of other aggregates wait only while all 64 waits are in use, for example while the read
// model is down. For an aggregate that stays late, for example because the group has parked it, the
// feed waits the whole WaitTimeout once, and a twentieth of it for each later event.
//
// # Start and stop
//
// A stream may begin before Run observes events. It sends its first state at once, and is notified
// when Run has started. All streams end when Run returns or [Feed.Close] is called. Then clients
// reconnect, to another process. http.Server.Shutdown waits for streams, and does not end them, so
// register Close with the server:
//
//	server.RegisterOnShutdown(func() { _ = feed.Close() })
//
// millrace.App.Live makes a feed that the App runs. The App closes it before its servers stop.
package live
