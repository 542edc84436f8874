package awslambda

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"github.com/ThreeDotsLabs/watermill"
	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/ThreeDotsLabs/watermill/message/router/middleware"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/subscriber"
	"github.com/millrace-dev/millrace/wakeup"
)

// Config configures a [Function].
type Config struct {
	// Journal is the journal whose stream or wake-ups the function receives.
	Journal *journal.Journal
	// CatchUp runs a burst. It is the method CatchUp of a millrace.App, or a function that makes a
	// router and runs a [subscriber.Burst].
	CatchUp func(ctx context.Context, hints ...subscriber.Hint) (subscriber.Left, error)

	// Commands handles messages of SQS and SNS that are not wake-ups. [command.Dispatch] returns
	// such a function. If it returns an error, SQS delivers the message again. If Commands is nil,
	// such messages fail.
	//
	// Up to 10 messages of a batch are handled at a time. Messages of a FIFO queue with the same
	// message group are handled in order; if one fails, those after it fail too.
	//
	// The UUID of a message is the one that the publisher of watermill-aws has set, else the
	// message id of SNS or SQS. So package command executes a command once, however often it is
	// delivered. The metadata are the attributes of the message. cqrs.JSONMarshaler, the default of
	// an App, finds the name of the command in the attribute "name", such as "main.ShipOrder".
	Commands message.NoPublishHandlerFunc

	// Wakeups is the sender of the App, millrace.App.Wakeups. Each invocation flushes it before it
	// ends, for up to 5 seconds. It may be nil.
	Wakeups *wakeup.Sender

	// Metrics receives the line of metrics of each invocation. Default: os.Stdout.
	Metrics io.Writer
	// Namespace is the namespace of the metrics. Default: "Millrace".
	Namespace string
}

// ConfigError reports a setting that cannot work. Field names the setting, and Reason says why.
type ConfigError struct{ Field, Reason string }

func (e *ConfigError) Error() string {
	return fmt.Sprintf("awslambda: Config.%s %s", e.Field, e.Reason)
}

// EventError reports an event of Lambda that a [Function] cannot handle, such as one of another
// table's stream. Usually a trigger of the function is configured wrongly.
type EventError struct {
	Reason string // what is wrong with the event
}

func (e *EventError) Error() string { return "awslambda: " + e.Reason }

// Function is a function of AWS Lambda. It is safe for concurrent use.
type Function struct {
	config   Config
	logger   watermill.LoggerAdapter
	commands message.HandlerFunc
	name     string // of the function in Lambda; empty elsewhere

	writing sync.Mutex // of metrics
}

// New returns a function. A nil logger logs nothing. Errors: [*ConfigError].
func New(config Config, logger watermill.LoggerAdapter) (*Function, error) {
	if config.Journal == nil {
		return nil, &ConfigError{"Journal", "is nil; pass the opened journal"}
	}
	if config.CatchUp == nil {
		return nil, &ConfigError{"CatchUp", "is nil; pass the method CatchUp of the App"}
	}
	if config.Metrics == nil {
		config.Metrics = os.Stdout
	}
	if config.Namespace == "" {
		config.Namespace = "Millrace"
	}
	if logger == nil {
		logger = watermill.NopLogger{}
	}
	f := &Function{config: config, logger: logger, name: os.Getenv("AWS_LAMBDA_FUNCTION_NAME")}
	f.commands = middleware.Recoverer(func(msg *message.Message) ([]*message.Message, error) {
		if config.Commands == nil {
			return nil, &EventError{"the message is no wake-up, and Config.Commands is not set"}
		}
		return nil, config.Commands(msg)
	})
	return f, nil
}

// Invoke handles an event of Lambda, as JSON, and returns the reply. It ends before the deadline of
// ctx, which Lambda sets to the time-out of the function.
//
// Errors: [*EventError], those of Config.CatchUp, and those of Config.Commands if all messages have
// failed. The package comment says what Lambda does then.
func (f *Function) Invoke(ctx context.Context, event []byte) ([]byte, error) {
	if deadline, limited := ctx.Deadline(); limited { // time for the reply
		var cancel context.CancelFunc
		ctx, cancel = context.WithDeadline(ctx, deadline.Add(-min(time.Until(deadline)/10, time.Second)))
		defer cancel()
	}
	m := metrics{}
	reply, err := f.handle(ctx, event, m)
	if err != nil {
		f.logger.Error("The invocation has failed", err, nil)
	}
	f.writeMetrics(m)
	return reply, err
}

func (f *Function) handle(ctx context.Context, event []byte, m metrics) (reply []byte, err error) {
	w, err := f.read(event)
	if err != nil {
		return nil, err
	}
	failed := map[string]error{}
	if len(w.commands) > 0 {
		failed = f.executeBefore(ctx, w)
		m["Commands"], m["CommandFailures"] = len(w.commands), len(failed)
	}
	var left remaining
	if w.sweep || len(w.hints) > 0 { // without hints CatchUp is a sweep
		left, err = f.catchUp(ctx, w.hints)
	}
	switch {
	case err != nil:
		for _, id := range w.wakeups {
			failed[id] = err
		}
	case w.sweep:
		m["Sweeps"], m["Left"] = 1, left.Left
	case len(w.hints) > 0:
		m["Bursts"], m["Hints"] = 1, len(w.hints)
	}
	f.flushWakeups(ctx)
	if w.sweep && err == nil {
		return json.Marshal(left)
	}
	return w.reply(failed, err)
}

// flushWakeups waits for wake-ups to be sent. Nothing is lost if they are not sent.
func (f *Function) flushWakeups(ctx context.Context) {
	if f.config.Wakeups == nil {
		return
	}
	if err := f.config.Wakeups.Flush(ctx); err != nil {
		f.logger.Error("Wake-ups may not have been sent; polls and sweeps find the events", err, nil)
	}
}

// executeBefore handles the commands. A burst that follows has half of the time.
func (f *Function) executeBefore(ctx context.Context, w work) map[string]error {
	if deadline, limited := ctx.Deadline(); limited && len(w.hints) > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithDeadline(ctx, deadline.Add(-time.Until(deadline)/2))
		defer cancel()
	}
	return f.execute(ctx, w.commands)
}

// errNoTime is the error of a burst with hints that has left events because of its deadline.
var errNoTime = errors.New("there was no time for all events: they are handled when Lambda tries again, or by the next sweep")

func (f *Function) catchUp(ctx context.Context, versions map[aggregate.ID]uint64) (remaining, error) {
	hints := make([]subscriber.Hint, 0, len(versions))
	for id, version := range versions {
		hints = append(hints, subscriber.Hint{Aggregate: id, Version: version})
	}
	left, err := f.config.CatchUp(ctx, hints...)
	if err == nil && len(hints) > 0 && left.Late {
		err = errNoTime
	}
	r := remaining{Left: left.Aggregates}
	if !left.Due.IsZero() {
		r.Due = &left.Due
	}
	return r, err
}
