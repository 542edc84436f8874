package metrics

import (
	"iter"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/millrace-dev/millrace/process"
	"github.com/millrace-dev/millrace/projection"
	"github.com/millrace-dev/millrace/repository"
	"github.com/millrace-dev/millrace/subscriber"
	"github.com/millrace-dev/millrace/wakeup"
)

// App yields the components to observe. *millrace.App implements it.
type App interface {
	Components() iter.Seq2[string, any]
}

// Collectors returns a collector for each repository, subscriber, projection and process manager
// that was added to an App, and for its wake-ups.
func Collectors(app App) (collectors []prometheus.Collector) {
	for name, component := range app.Components() {
		switch p := component.(type) {
		case *subscriber.Subscriber:
			collectors = append(collectors, NewSubscriberCollector(p, SubscriberConfig{ConsumerGroup: name}))
		case interface{ Stats() projection.Stats }:
			collectors = append(collectors, NewProjectionCollector(p, ProjectionConfig{Name: name}))
		case interface{ Stats() process.Stats }:
			collectors = append(collectors, NewProcessCollector(p, ProcessConfig{Type: name}))
		case interface{ Stats() repository.Stats }:
			collectors = append(collectors, NewRepositoryCollector(p, RepositoryConfig{AggregateType: name}))
		case *wakeup.Sender:
			collectors = append(collectors, NewWakeupSenderCollector(p))
		case *wakeup.Receiver:
			collectors = append(collectors, NewWakeupReceiverCollector(p))
		}
	}
	return collectors
}
