package awslambda

import (
	"context"
	"errors"
	"maps"
	"sync"

	"github.com/ThreeDotsLabs/watermill"
)

// maxConcurrent is the number of messages that are handled at a time.
const maxConcurrent = 10

// errUnfinished is the error of a message whose handler has not returned in time.
var errUnfinished = errors.New("the handler has not returned in time")

// execute handles commands until ctx ends. It returns the errors of those that have failed, by
// message id.
func (f *Function) execute(ctx context.Context, messages []incoming) map[string]error {
	var mu sync.Mutex
	failed := map[string]error{}
	for _, m := range messages {
		failed[m.id] = errUnfinished
	}
	done := func(m incoming, err error) {
		mu.Lock()
		defer mu.Unlock()
		if failed[m.id] = err; err == nil {
			delete(failed, m.id)
		}
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		slots := make(chan struct{}, maxConcurrent)
		var running sync.WaitGroup
		for _, queue := range inOrder(messages) {
			slots <- struct{}{}
			running.Add(1)
			go func() { // one for each queue, because a handler may call runtime.Goexit
				defer running.Done()
				defer func() { <-slots }()
				f.inTurn(ctx, queue, done)
			}()
		}
		running.Wait()
	}()
	select {
	case <-ended:
	case <-ctx.Done():
	}
	mu.Lock()
	defer mu.Unlock()
	return maps.Clone(failed)
}

// inTurn handles messages one by one. After one that fails, the others fail.
func (f *Function) inTurn(ctx context.Context, messages []incoming, done func(incoming, error)) {
	var err error
	for _, m := range messages {
		if err == nil {
			err = f.command(ctx, m)
		}
		done(m, err)
	}
}

// inOrder returns one queue for each message group, and one for each message without a group. The
// messages of a queue are handled in order.
func inOrder(messages []incoming) (queues [][]incoming) {
	places := map[string]int{}
	for _, m := range messages {
		if at, known := places[m.order]; known {
			queues[at] = append(queues[at], m)
			continue
		}
		if m.order != "" {
			places[m.order] = len(queues)
		}
		queues = append(queues, []incoming{m})
	}
	return queues
}

func (f *Function) command(ctx context.Context, m incoming) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	m.SetContext(ctx)
	_, err := f.commands(m.Message)
	if err != nil {
		f.logger.Error("A message has failed", err, watermill.LogFields{"uuid": m.UUID, "message_id": m.id})
	}
	return err
}
