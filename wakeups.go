package millrace

import (
	"context"
	"time"

	"github.com/ThreeDotsLabs/watermill"

	"github.com/millrace-dev/millrace/wakeup"
)

// addWakeups creates the sender and the receiver of wake-ups, if the App has them.
func (a *App) addWakeups() (err error) {
	config := a.config.Wakeups
	config.Journal = a.journal
	if config.Publisher != nil {
		if a.sender, err = wakeup.NewSender(config, a.config.Logger); err != nil {
			return err
		}
		a.addComponent("wakeups", a.sender)
	}
	if config.Subscriber != nil {
		if a.receiver, err = wakeup.NewReceiver(config, a.config.Logger); err != nil {
			return err
		}
		a.addComponent("wakeups", a.receiver)
	}
	return nil
}

// Wakeups returns the sender of wake-ups. It is nil if [Config].Wakeups has no Publisher. The App
// closes it.
func (a *App) Wakeups() *wakeup.Sender { return a.sender }

// flushWakeups waits for the wake-ups of a burst to be sent. Nothing is lost if they are not sent.
func (a *App) flushWakeups(ctx context.Context) {
	if a.sender == nil {
		return
	}
	if err := a.sender.Flush(ctx); err != nil {
		a.logUnsent(err)
	}
}

// stopSender waits for wake-ups to be sent. It has the rest of StopTimeout, but a second at least.
// Nothing is lost if they are not sent.
func (r *run) stopSender(deadline time.Time) {
	if r.sender == nil {
		return
	}
	closed := make(chan error, 1)
	go func() { closed <- r.sender.Close() }()
	var err error
	select {
	case err = <-closed:
	case <-time.After(max(time.Second, time.Until(deadline))):
		err = wakeup.ErrCloseTimeout
	}
	if err != nil {
		r.logUnsent(err)
	}
}

func (a *App) logUnsent(err error) {
	a.config.Logger.Info("Not all wake-ups were sent; other processes find the events when they poll", watermill.LogFields{"err": err})
}
