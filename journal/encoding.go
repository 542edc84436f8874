package journal

import (
	"context"
	"fmt"
	"regexp"
)

// ForReading returns an encoding that decodes as e does, and encodes nothing. Use it to retire an
// encoding, or to let all processes read an encoding before the first process writes it.
func ForReading(e Encoding) Encoding { return forReading{e} }

type forReading struct{ Encoding }

func (forReading) Encode(context.Context, Place, []byte) ([]byte, bool, error) {
	return nil, false, nil
}

func (forReading) Overhead() int { return 0 }

// Raw returns the same journal without its encodings and its [Config.EventType]. Its records and
// heads have payloads as they are stored, and their Encoding fields name the applied encodings. Raw
// is for tools that only need numbers and versions, or that show payloads that they cannot decode.
// Such tools need no keys. [Journal.Decode] decodes a single record.
func (j *Journal) Raw() *Journal {
	return &Journal{j.engine.Raw()}
}

// Decode returns a record of a [Journal.Raw] with its payload decoded. If the record has no type,
// it also has the type that [Config.EventType] finds. Decode returns r itself if there is nothing
// to do.
//
// Errors: [*EventTypeError]; [ErrKeyDestroyed], which is final. Any other [*EncodingError] names an
// encoding that [Config.Encodings] lacks, or the encoding whose error it wraps.
func (j *Journal) Decode(ctx context.Context, r *Record) (*Record, error) {
	return j.engine.Decode(ctx, r)
}

var encodingName = regexp.MustCompile(`^[a-z0-9._-]{1,32}$`)

func (c Config) validateEncodings() error {
	taken := map[string]bool{}
	for i, e := range c.Encodings {
		field := fmt.Sprintf("Encodings[%d]", i)
		if reading, ok := e.(forReading); e == nil || ok && reading.Encoding == nil {
			return &ConfigError{Field: field, Reason: "is nil"}
		}
		switch name := e.Name(); {
		case !encodingName.MatchString(name):
			return &ConfigError{Field: field, Reason: fmt.Sprintf("has the name %q: use 1 to 32 lower case letters, digits and ._-", name)}
		case taken[name]:
			return &ConfigError{Field: field, Reason: fmt.Sprintf("has the name %q, like an earlier one", name)}
		default:
			taken[name] = true
		}
	}
	for i, name := range c.RequiredEncodings {
		if field := fmt.Sprintf("RequiredEncodings[%d]", i); !encodingName.MatchString(name) {
			return &ConfigError{Field: field, Reason: fmt.Sprintf("is %q, which is not the name of an encoding", name)}
		}
	}
	return nil
}
