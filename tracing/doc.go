// Package tracing adds OpenTelemetry spans to commits and to the handling of events. It links the
// two: from a failed handler you can find the command that led to its event.
//
//	millrace.Config{CommitMiddleware: tracing.CommitMiddleware(tracing.Config{})} // all of an App
//	repository.Config{Middleware: tracing.CommitMiddleware(tracing.Config{})} // of one repository
//	events := tracing.NewPublisher(pub, tracing.Config{}) // spans of Publish
//	router.AddMiddleware(tracing.Middleware(tracing.Config{})) // a span for each handling
//
// The package depends only on the API of OpenTelemetry. The program has to provide the SDK and an
// exporter. By default [Config] uses the global provider and propagator. The global propagator does
// nothing until the program sets one, and without a propagator there are spans but no links:
//
//	otel.SetTextMapPropagator(propagation.TraceContext{})
//
// # From commit to handling
//
// The propagator writes the span of a commit into the metadata of its events. The keys of
// propagation.TraceContext are traceparent and tracestate. Metadata reaches every consumer group,
// so each handling knows the commit of its event, however much later it happens. Other keys, such
// as correlation_id and causation_id, are not changed.
//
// A handling has its own trace, with a link to the commit. The reason is that many groups handle
// one commit, and handle it again when a read model is rebuilt years later. With
// [Config].ContinueTrace a handling is a child of the commit, in the same trace. If the context of
// the message already has a span, the handling is a child of that span. An earlier middleware or
// the context of the router may have set it.
//
// The handler finds the span of the handling in the context of its message. Queries, calls and
// commits with that context belong to the span: commits with a span of their own are its children,
// and the events of other commits carry it. Messages that a handler returns carry it too, unless
// they have a span.
//
// # Process managers
//
// [StepMiddleware] adds a span to each step of a process manager:
//
//	process.Config{Middleware: tracing.StepMiddleware(tracing.Config{})}
//
// A timeout is stored with the span of the step that set it, and the step of the timeout is linked
// to that step. Without StepMiddleware, the events of a timeout carry the span of the context in
// which the timeout was set.
//
// # Without a span for each commit
//
// [ContextWithTrace] puts the span of a context into the metadata of all commits with that context,
// by any repository. A service that calls it once for each request links handlings to requests, and
// needs no [CommitMiddleware].
//
// # Spans
//
//	commit {type}    producer  Execute and Save of a Repository, with all attempts
//	commit {types}   producer  Execute of a Transaction, with all attempts,
//	                           as "commit account, basket"
//	step {type}      producer  one step of a process manager, with its commands;
//	                           see StepMiddleware
//	publish {topic}  producer  Publish; one span for each span in the messages' contexts
//	process {topic}  consumer  one handling of one message
//
// Their attributes are these; the first ones follow the semantic conventions for messaging:
//
//	messaging.system                   millrace; not for messages of another subscriber
//	messaging.operation.name, .type    commit, step, publish: send; process: process
//	messaging.destination.name         the topic, which is the aggregate type;
//	                                   not of a Transaction
//	messaging.batch.message_count      number of events or messages, if it is not 1
//	messaging.message.id               process, step of an event, publish of one message: event id
//	messaging.message.body.size        process: bytes of the payload
//	messaging.message.conversation_id  process: metadata correlation_id, if there is one
//	messaging.consumer.group.name      process
//	error.type                         if the status is an error, see below
//	millrace.aggregate.id              the id without its type; publish: only of one message;
//	                                   not of a Transaction
//	millrace.aggregates                commit of a Transaction: type and id of each,
//	                                   with a hyphen between
//	millrace.aggregate.version         commit, not of a Transaction: the version after it
//	millrace.commit.outcome            commit: committed, nothing, repeated, refused, unknown or
//	                                   failed; step: nothing, unknown or failed
//	millrace.commit.decisions          commit by Execute: number of calls of the decision
//	millrace.event.types               commit: the types of its events, each once
//	millrace.event.type                process, step of an event
//	millrace.process.timeout           step of a timeout: its name
//	millrace.event.number              process: the sequence number of the event
//	millrace.delivery.attempt          process: from 1, see subscriber.AttemptFromContext
//	watermill.handler                  process: the name of the router's handler
//
// Spans contain ids of aggregates, but no payloads and no metadata.
//
// # Errors
//
// The span of a failed operation has the status error, the error as an event, and the attribute
// error.type. error.type is canceled, timeout, the name of a sentinel of the journal in lower case
// (conflict, outcome_unknown, throttled and so on), or the Go type of the innermost error.
//
// A decision that refuses a command is not a failure. The outcome is refused, the error is an event
// of the span, and the status is unset. A command that was executed before is not a failure either.
// If a decision or handler panics, the status is error, the SDK may record the panic, and the panic
// continues.
//
// # Cost
//
// Each event is stored with about 70 bytes more, sampled or not, and with the tracestate if there
// is one. These bytes count for the sizes that DynamoDB bills. There are no additional round trips.
//
// A propagator that includes propagation.Baggage stores the baggage with each event, in plain text
// and permanently. If baggage can contain data that must not be stored, set [Config].Propagator to
// a propagator without it.
package tracing
