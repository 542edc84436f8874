package journal

import (
	"context"
	"fmt"
	"regexp"
	"slices"

	"github.com/millrace-dev/millrace/aggregate"
)

// ForReading returns an encoding that decodes as e does, and encodes nothing. Use it to retire an
// encoding, or to let all processes read an encoding before the first process writes it.
func ForReading(e Encoding) Encoding { return forReading{e} }

type forReading struct{ Encoding }

func (forReading) Encode(context.Context, Place, []byte) ([]byte, bool, error) {
	return nil, false, nil
}

func (forReading) Overhead() int { return 0 }

// ForTypes returns an encoding that encodes the payloads of some aggregate types as e does, and
// leaves those of other types as they are. It decodes the payloads of all types. So personal data
// can be encrypted, and the rest stays plain. A type can be added later; see also
// [Config.RequiredByType].
func ForTypes(e Encoding, aggregateTypes ...string) Encoding {
	return forTypes{e, slices.Clone(aggregateTypes)}
}

type forTypes struct {
	Encoding
	types []string
}

func (f forTypes) Encode(ctx context.Context, at Place, payload []byte) ([]byte, bool, error) {
	if !slices.Contains(f.types, at.Aggregate.Type) {
		return nil, false, nil
	}
	return f.Encoding.Encode(ctx, at, payload)
}

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
		if err := validEncoding(e); err != "" {
			return &ConfigError{Field: field, Reason: err}
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
	if err := validNames("RequiredEncodings", c.RequiredEncodings); err != nil {
		return err
	}
	for aggregateType, names := range c.RequiredByType {
		field := fmt.Sprintf("RequiredByType[%q]", aggregateType)
		if _, err := aggregate.NewID(aggregateType, "1"); err != nil {
			return &ConfigError{Field: field, Reason: err.Error()}
		}
		if len(names) == 0 {
			return &ConfigError{Field: field, Reason: "names no encoding: name one, or leave the type out"}
		}
		if err := validNames(field, names); err != nil {
			return err
		}
	}
	return nil
}

func validNames(field string, names []string) error {
	for i, name := range names {
		if !encodingName.MatchString(name) {
			return &ConfigError{Field: fmt.Sprintf("%s[%d]", field, i), Reason: fmt.Sprintf("is %q: a name has 1 to 32 lower case letters, digits and ._-", name)}
		}
	}
	return nil
}

// validEncoding returns what is wrong with an encoding, or an empty text.
func validEncoding(e Encoding) (fault string) {
	switch e := e.(type) {
	case nil:
		return "is nil: leave it out"
	case forReading:
		return validEncoding(e.Encoding)
	case forTypes:
		if len(e.types) == 0 {
			return "is for no types: pass them to ForTypes"
		}
		return validEncoding(e.Encoding)
	}
	return ""
}
