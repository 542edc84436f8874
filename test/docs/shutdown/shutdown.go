// Package shutdown runs a router until the program is asked to end.
package shutdown

import (
	"context"
	"errors"
	"time"

	"github.com/ThreeDotsLabs/watermill"
	"github.com/ThreeDotsLabs/watermill/message"

	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/subscriber"
)

// Run handles events of accounts until ctx ends, as that of signal.NotifyContext does.
func Run(ctx context.Context, j *journal.Journal, handle message.NoPublishHandlerFunc) error {
	logger := watermill.NewSlogLogger(nil)
	sub, err := subscriber.NewSubscriber(subscriber.Config{
		Journal: j, ConsumerGroup: "mails", CloseTimeout: 15 * time.Second, // the longest handler
	}, logger)
	if err != nil {
		return err
	}
	// CloseTimeout is longer than that of the subscriber.
	router, err := message.NewRouter(message.RouterConfig{CloseTimeout: 20 * time.Second}, logger)
	if err != nil {
		return errors.Join(err, sub.Close())
	}
	router.AddConsumerHandler("mails", "account", sub, handle)

	closed, ended := make(chan error, 1), make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		select {
		case <-router.Running(): // the router cannot be closed before that
			closed <- router.Close()
		case <-ended:
			closed <- nil
		}
	})
	err = router.Run(context.WithoutCancel(ctx)) // returns when the router is closed
	close(ended)
	if !stop() {
		err = errors.Join(err, <-closed)
	}
	return errors.Join(err, sub.Close())
}
