package sim

import (
	"fmt"

	"github.com/ThreeDotsLabs/watermill"
)

// logger writes what a subscriber logs to the trace.
type logger struct {
	watermill.NopLogger
	oracle *oracle
	member *member
	fields watermill.LogFields
}

func (l *logger) Error(msg string, err error, fields watermill.LogFields) {
	l.say("logs an error: "+msg+": "+err.Error(), fields)
}

func (l *logger) Info(msg string, fields watermill.LogFields) { l.say("logs: "+msg, fields) }

func (l *logger) Debug(msg string, fields watermill.LogFields) { l.say("logs: "+msg, fields) }

func (l *logger) With(fields watermill.LogFields) watermill.LoggerAdapter {
	return &logger{oracle: l.oracle, member: l.member, fields: l.fields.Add(fields)}
}

func (l *logger) say(msg string, fields watermill.LogFields) {
	l.oracle.mu.Lock()
	defer l.oracle.mu.Unlock()
	l.oracle.trace.say(l.member.name, fmt.Sprint(msg, " ", l.fields.Add(fields)))
}
