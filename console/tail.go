package console

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/journal/tail"
)

// tailView is the page of a live tail. Its events come from the stream.
type tailView struct {
	Topic     string   `json:"topic"`
	EventType string   `json:"event_type"`
	ID        string   `json:"id"`
	Topics    []string `json:"topics"`
	// Stream is the link to the events, empty if no topic is chosen.
	Stream string `json:"-"`
}

func (v tailView) title() string {
	if v.Topic == "" {
		return "Live tail"
	}
	return "Live tail of " + v.Topic
}

func (r *reading) tail(ctx context.Context) (any, error) {
	v := tailView{Topic: r.query.Get("topic"), EventType: r.query.Get("event_type"), ID: r.query.Get("id")}
	all, _, err := r.listGroups(ctx)
	if err != nil {
		return nil, err
	}
	v.Topics = r.topicNames(all)
	if v.Topic != "" {
		if _, err := aggregate.NewID(v.Topic, "x"); err != nil {
			return nil, err
		}
		v.Stream = link("stream", "topic", v.Topic, "event_type", v.EventType, "id", v.ID)
	}
	return v, nil
}

const (
	// mostViewers is the maximum number of open live tails.
	mostViewers = 100
	// tailKept is the number of events of a topic that are stored for viewers who join later.
	tailKept = 100
	// tailWaiting is the maximum number of batches that wait for a slow viewer.
	tailWaiting = 64
	// tailStatus is the interval at which a viewer receives the cost of the tail. It also keeps
	// proxies from closing the connection.
	tailStatus = 5 * time.Second
	// tailPatience is the timeout of writes to a viewer. It replaces the WriteTimeout of the
	// server, which is too short for streams.
	tailPatience = time.Minute
	// tailOverlap is the time before its beginning from which a tail reads, since the index is
	// eventually consistent.
	tailOverlap = 5 * time.Second
)

// tails holds the live tails of topics. All viewers of a topic share one tail. It ends when the
// last viewer leaves.
type tails struct {
	config  Config
	mu      sync.Mutex
	byTopic map[string]*topicTail
	viewers int
	closed  bool
	closing chan struct{}
	running sync.WaitGroup
}

// topicTail follows a topic.
type topicTail struct {
	recent  []*journal.Record // the last events, oldest first
	viewers []*viewer
	stop    context.CancelFunc
	units   *journal.Units
	began   time.Time
}

// viewer is an open stream of a live tail.
type viewer struct {
	batches chan []*journal.Record
	missed  atomic.Int64 // events that were left out while too many batches waited
	ended   chan error   // receives the error with which the tail has ended
}

func newTails(config Config) *tails {
	return &tails{config: config, byTopic: map[string]*topicTail{}, closing: make(chan struct{})}
}

func (t *tails) close() {
	t.mu.Lock()
	if !t.closed {
		t.closed = true
		close(t.closing)
	}
	for _, f := range t.byTopic {
		f.stop()
	}
	t.mu.Unlock()
	t.running.Wait()
}

// join adds a viewer, and returns the recent events of the tail. fresh reports that the tail begins
// with this viewer.
func (t *tails) join(topic string) (v *viewer, tail *topicTail, recent []*journal.Record, fresh bool, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case t.closed:
		return nil, nil, nil, false, &unavailableError{"The server is shutting down."}
	case t.viewers == mostViewers:
		return nil, nil, nil, false, &unavailableError{fmt.Sprintf("%d live tails are open, which is the limit. Close one.", mostViewers)}
	}
	v = &viewer{batches: make(chan []*journal.Record, tailWaiting), ended: make(chan error, 1)}
	tail = t.byTopic[topic]
	if fresh = tail == nil; fresh {
		tail = t.begin(topic)
	}
	tail.viewers = append(tail.viewers, v)
	t.viewers++
	return v, tail, slices.Clone(tail.recent), fresh, nil
}

func (t *tails) begin(topic string) *topicTail {
	ctx, stop := context.WithCancel(context.Background())
	ctx, units := journal.CountUnits(ctx)
	now := t.config.Journal.Config().Now
	f := &topicTail{stop: stop, units: units, began: time.Now()}
	t.byTopic[topic] = f
	t.running.Add(1)
	go func() {
		defer t.running.Done()
		defer stop()
		err := tail.Run(ctx, tail.Config{
			Journal: t.config.Journal.Raw(), Topic: topic, Since: now().Add(-tailOverlap), Follow: true, Now: now,
			OnError: func(err error) { t.config.Logger.Info("Live tail of "+topic+": "+err.Error(), nil) },
		}, func(batch []*journal.Record) error {
			t.publish(f, batch)
			return nil
		})
		t.end(topic, f, err)
	}()
	return f
}

func (t *tails) publish(f *topicTail, batch []*journal.Record) {
	t.mu.Lock()
	defer t.mu.Unlock()
	f.recent = append(f.recent, batch...)
	f.recent = slices.Clone(f.recent[max(len(f.recent)-tailKept, 0):])
	for _, v := range f.viewers {
		select {
		case v.batches <- batch:
		default:
			v.missed.Add(int64(len(batch)))
		}
	}
}

// end sends the viewers of a tail the error with which it ended.
func (t *tails) end(topic string, f *topicTail, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.byTopic[topic] == f {
		delete(t.byTopic, topic)
	}
	if t.closed {
		err = &unavailableError{"The server is shutting down."} // not the error of the context
	}
	for _, v := range f.viewers {
		v.ended <- err
	}
}

func (t *tails) leave(topic string, f *topicTail, v *viewer) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.viewers--
	f.viewers = slices.DeleteFunc(f.viewers, func(o *viewer) bool { return o == v })
	if len(f.viewers) == 0 {
		f.stop()
		if t.byTopic[topic] == f {
			delete(t.byTopic, topic)
		}
	}
}

// tailFilter selects the events that a viewer sees.
type tailFilter struct{ eventType, id string }

func (f tailFilter) wants(r *journal.Record) bool {
	return strings.Contains(r.EventType, f.eventType) && strings.Contains(r.Aggregate.Value, f.id)
}

// tailStatusView is sent every few seconds.
type tailStatusView struct {
	ReadUnits float64 `json:"read_units"` // of the tail so far
	Seconds   float64 `json:"seconds"`    // since it began
	Viewers   int     `json:"viewers"`
	Missed    int64   `json:"missed"` // events that were left out because this viewer is too slow
}

// serveTail streams the events of a topic as server-sent events: as HTML, or as JSON if the
// parameter format is json.
func (c *Console) serveTail(w http.ResponseWriter, r *http.Request) {
	topic := r.URL.Query().Get("topic")
	if _, err := aggregate.NewID(topic, "x"); err != nil {
		c.writeJSON(w, statusOf(err), apiError{err.Error()})
		return
	}
	v, tail, recent, fresh, err := c.tails.join(topic)
	if err != nil {
		c.writeJSON(w, statusOf(err), apiError{err.Error()})
		return
	}
	defer c.tails.leave(topic, tail, v)
	s := &stream{
		console: c, w: w, flush: http.NewResponseController(w), json: r.URL.Query().Get("format") == "json",
		filter: tailFilter{r.URL.Query().Get("event_type"), r.URL.Query().Get("id")},
	}
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("X-Accel-Buffering", "no") // for nginx
	if err := s.flush.Flush(); errors.Is(err, http.ErrNotSupported) {
		c.logError(r, fmt.Errorf("live tails need a http.ResponseWriter with Flush, or Unwrap, which a middleware hides: %w", err))
		c.writeJSON(w, http.StatusInternalServerError, apiError{"The server cannot send live tails. The log of the console says why."})
		return
	}
	if fresh {
		ctx, units := journal.CountUnits(r.Context())
		recent, err = (&reading{Console: c, units: units, now: c.now()}).newest(ctx, topic)
		if err != nil {
			_ = s.failed(err)
			return
		}
		recent = recent[:min(len(recent), newestShown)]
		slices.Reverse(recent)
	}
	err = s.events(r.Context(), recent)
	status := time.NewTicker(tailStatus)
	defer status.Stop()
	if err == nil {
		err = s.status(c.tails.statusOf(tail, v))
	}
	for err == nil {
		select {
		case <-r.Context().Done():
			return
		case <-c.tails.closing:
			_ = s.failed(&unavailableError{"The server is shutting down."})
			return
		case err := <-v.ended:
			_ = s.failed(err)
			return
		case batch := <-v.batches:
			err = s.events(r.Context(), batch)
		case <-status.C:
			err = s.status(c.tails.statusOf(tail, v))
		}
	}
}

func (t *tails) statusOf(f *topicTail, v *viewer) tailStatusView {
	t.mu.Lock()
	defer t.mu.Unlock()
	return tailStatusView{f.units.Read(), time.Since(f.began).Seconds(), len(f.viewers), v.missed.Load()}
}

// stream writes server-sent events.
type stream struct {
	console *Console
	w       http.ResponseWriter
	flush   *http.ResponseController
	json    bool
	filter  tailFilter
}

func (s *stream) events(ctx context.Context, batch []*journal.Record) error {
	for _, record := range batch {
		if !s.filter.wants(record) {
			continue
		}
		view := s.console.event(ctx, record)
		if s.json {
			if err := s.send("event", view); err != nil {
				return err
			}
			continue
		}
		var out bytes.Buffer
		if err := templates["tail"].ExecuteTemplate(&out, "tailevent", view); err != nil {
			return err
		}
		key := strconv.Quote(record.Aggregate.Value) + "/" + strconv.FormatUint(record.Number, 10)
		if err := s.send("event", map[string]string{"key": key, "html": out.String()}); err != nil {
			return err
		}
	}
	return s.flush.Flush()
}

func (s *stream) status(view tailStatusView) error {
	if err := s.send("status", view); err != nil {
		return err
	}
	return s.flush.Flush()
}

func (s *stream) failed(err error) error {
	if err := s.send("failed", apiError{err.Error()}); err != nil {
		return err
	}
	return s.flush.Flush()
}

func (s *stream) send(event string, value any) error {
	data, err := json.Marshal(value)
	if err != nil {
		return err
	}
	_ = s.flush.SetWriteDeadline(time.Now().Add(tailPatience)) // if the server supports it
	_, err = fmt.Fprintf(s.w, "event: %s\ndata: %s\n\n", event, data)
	return err
}
