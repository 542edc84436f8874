// Package tail shows the events of a topic in the order of their times, and those that come,
// without a consumer group: it stores nothing and takes nothing from anybody.
//
// It reads the journal's tail index, which is eventually consistent, and writers' clocks differ. So
// what a live pass has gone by is read a second time, a little later, by a trailing pass; what that
// finds is given late, and each event once. An event that becomes visible more than
// [Config.TrailingDelay] after its time is not given. Who must have every event wants a subscriber.
package tail
