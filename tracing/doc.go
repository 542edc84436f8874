// Package tracing makes OpenTelemetry spans of commits and of the handling of their events, and
// links the two: from a handler that failed you can find the command that led to its event.
//
//	traced := tracing.NewRepository(accounts, tracing.Config{}) // spans of Execute and Save
//	joint := tracing.NewParts(&parts, tracing.Config{})         // a span of Execute
//	events := tracing.NewPublisher(pub, tracing.Config{})       // spans of Publish
//	router.AddMiddleware(tracing.Middleware(tracing.Config{}))  // a span for each handling
//
// It needs the API of OpenTelemetry alone; the program brings the SDK and an exporter. Provider and
// propagator are the global ones unless [Config] names others. The global propagator carries
// nothing until a program has set one:
//
//	otel.SetTextMapPropagator(propagation.TraceContext{})
//
// Without it there are spans, and no links.
//
// # From commit to handling
//
// The span of a commit is written into the metadata of its events, by the propagator: with
// propagation.TraceContext under the keys traceparent and tracestate. Metadata reaches every
// consumer group, so a handling, however much later, knows which commit its event is from. Other
// keys, such as correlation_id and causation_id, stay as they are.
//
// A handling has a trace of its own, with a link to the commit: one commit is handled by many
// groups, and again when a read model is rebuilt years later. If the context of the message has a
// span already, from a middleware before this one or from the context that the router runs with,
// the handling is its child. Where commit and handlers shall be one trace, [Config.ContinueTrace]
// makes the handling a child of the commit instead.
//
// What a handler does with the context of its message goes on with the span of the handling:
// queries, calls, and commits. That holds for a [Repository] of this package, whose commits become
// children, and for a plain one, whose events carry the span of the handling. Messages that a
// handler returns get it as well, unless they have a span.
//
// # Process managers
//
// [Steps] makes a span of each step of a process manager:
//
//	process.Config{Middleware: tracing.Steps(tracing.Config{})}
//
// A timeout is stored with the span of the step that set it, so the step of the timeout is linked
// to that one, however much later. Without Steps, what a timeout leads to carries the span that its
// setting had.
//
// # Without a span for each commit
//
// [ContextWithTrace] puts the span of a context into the metadata of all commits that are made with
// it, by any repository. A service that calls it once for each request links handlings to requests,
// and needs no [Repository] of this package.
//
// # Spans
//
//	commit {type}    producer   Execute and Save of a Repository, with all attempts
//	commit {types}   producer   Execute of Parts, with all attempts; such as "commit account, basket"
//	step {type}      producer   one step of a process manager, with its commands; see [Steps]
//	publish {topic}  producer   Publish, once for each span that the messages' contexts have
//	process {topic}  consumer   one handling of one message
//
// They have these attributes, the first ones by the semantic conventions for messaging:
//
//	messaging.system                    millrace; not where a message comes from another subscriber
//	messaging.operation.name, .type     commit, step, publish: send; process: process
//	messaging.destination.name          the topic, which is the aggregate type; not of Parts
//	messaging.batch.message_count       events of the commit, messages of the Publish; not if there is one
//	messaging.message.id                process, step of an event, publish of one message: the event id
//	messaging.message.body.size         process: bytes of the payload
//	messaging.message.conversation_id   process: metadata correlation_id, if there is one
//	messaging.consumer.group.name       process
//	error.type                          where the status is an error, see below
//	millrace.aggregate.id               the id without its type; publish only of one message; not of
//	                                    Parts
//	millrace.aggregates                 commit of Parts: type and id of each, with a hyphen between
//	millrace.aggregate.version          commit, not of Parts: the version after it
//	millrace.commit.outcome             commit: committed, nothing, repeated, refused, unknown, failed;
//	                                    step: nothing, unknown, failed
//	millrace.commit.decisions           commit by Execute: how often the decision ran
//	millrace.event.types                commit: the types of its events, each once
//	millrace.event.type                 process, step of an event
//	millrace.process.timeout            step of a timeout: its name
//	millrace.event.number               process: the sequence number of the event
//	millrace.delivery.attempt           process: from 1, as subscriber.AttemptFromContext counts
//	watermill.handler                   process: the name of the router's handler
//
// Ids of aggregates are in spans, payloads and metadata are not.
//
// # Errors
//
// A span whose operation failed has the status error, the error as an event, and error.type: the
// name of a sentinel of the journal, in small letters (conflict, outcome_unknown, throttled, ...),
// canceled or timeout, or the Go type of the innermost error. A decision that refuses is no
// failure: the outcome is refused, the error is an event of the span, and the status stays unset.
// Nor is a command that the aggregate knows. A panic is an event too, if the SDK records it, and
// goes on.
//
// # Cost
//
// Each event is stored with some 70 bytes more, sampled or not, and with the tracestate if there is
// one. They count for the sizes that DynamoDB bills. No call makes a round trip more.
//
// A propagator that includes propagation.Baggage stores the baggage with each event: in plain text,
// and for good. Give [Config.Propagator] one without it if baggage can hold what must not stay.
package tracing
