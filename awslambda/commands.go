package awslambda

import (
	"context"
	"sync"

	"github.com/ThreeDotsLabs/watermill"
)

// maxConcurrent is the number of messages that are handled at a time.
const maxConcurrent = 10

// execute handles commands. It returns the errors of those that have failed, by message id.
func (f *Function) execute(ctx context.Context, messages []incoming) map[string]error {
	var (
		mu      sync.Mutex
		failed  = map[string]error{}
		running sync.WaitGroup
		free    = make(chan struct{}, maxConcurrent)
	)
	for _, queue := range inOrder(messages) {
		free <- struct{}{}
		running.Add(1)
		go func() {
			defer running.Done()
			defer func() { <-free }()
			var err error
			for _, m := range queue {
				if err == nil {
					err = f.command(ctx, m)
				}
				if err != nil {
					mu.Lock()
					failed[m.id] = err
					mu.Unlock()
				}
			}
		}()
	}
	running.Wait()
	return failed
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
