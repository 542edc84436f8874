// Package brokers tests that events reach other systems over real brokers, and that messages of
// other systems are handled: processes that forward are killed, DynamoDB throttles, and the broker
// has outages. No message is lost, the order is kept for each key, and duplicates have the same
// UUID.
//
// MILLRACE_FORWARD_EVENTS sets the number of events, which is 1,500 by default; make brokers
// forwards 100,000 to each broker.
package brokers
