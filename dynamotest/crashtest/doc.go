// Package crashtest runs instances of a service on one database, and crashes and replaces them
// while requests fail. So a test of the service shows that it loses and doubles nothing.
//
//	// open(ctx, client, listener) is yours. It opens the service, and returns an *App.
//	fleet := crashtest.New(t, 1, open)
//	first := fleet.Start()
//	fleet.Start()
//	calm := fleet.Storm(0.02) // throttling, latency, lost replies and so on
//	... // send requests with fleet.Client()
//	first.CrashAfter(20) // in the middle of its work
//	<-first.Ended()
//	fleet.Start()
//	calm()
//	fleet.Eventually(func(ctx context.Context, a *App) error { return a.check(ctx) })
//
// A [Service] is anything with a method Run, such as a millrace.App or a type that embeds one. It
// needs no HTTP server: then it does not use the listener.
//
// # Instances
//
// Each instance has a connection to the database of its own. [Instance.Crash] breaks it, as the
// end of a process would: nothing that the instance does later reaches the database, and its
// clients get no replies. [Instance.CrashAfter] does so after a number of requests. A loop over
// that number crashes an instance at each point of its work:
//
//	for requests := range 100 {
//		...
//		fleet.Start().CrashAfter(requests)
//	}
//
// [Instance.Stop] is an orderly stop, as in a deployment. [Fleet.Replace] starts an instance, and
// crashes or stops another one. At the end of the test all instances are stopped. An instance that
// ends by itself fails the test.
//
// A crashed instance cannot be removed from memory. Its goroutines go on until its Run returns, and
// can still call other services of the test, as a process can whose calls arrive late. The database
// refuses its requests with an AccessDeniedException, so that it ends soon and repeats nothing.
//
// # Clients
//
// The client of [Fleet.Client] behaves as clients behind a load balancer do. It sends a request to
// one instance, and repeats it with another one if no reply comes, or if the status is 502, 503 or
// 504. So requests that change something need an idempotency key.
//
// # Faults of other services
//
// A double of another service, such as a mail service, asks [Fleet.Fault] whether a call fails. Ask
// before the call takes effect, and again after it, as if the reply was lost.
//
// # Seeds
//
// The seed decides which requests and calls fail: the n-th one with the same keys fails in every
// run with the same seed, see dynamotest.Chance. It also decides what Replace does, and whether
// the last request of CrashAfter takes effect. The order of goroutines stays random, so to
// reproduce a rare failure, run the test with its seed several times. A test that fails logs its
// seed.
//
// # Times
//
// After a crash the members of a consumer group take over the shards when a lease has expired: 10
// seconds by default. Set shorter times in tests, by [Timing] and [ProcessTiming].
package crashtest
