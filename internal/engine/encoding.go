package engine

import (
	"context"
	"errors"
	"strings"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/internal/storage"
	"github.com/millrace-dev/millrace/internal/table"
	"github.com/millrace-dev/millrace/journal/journaltype"
)

// AttrEncoding names the encodings of the payload of an event or a head. The attribute is absent if
// no encoding was applied.
const AttrEncoding = "encoding"

// Decode implements Journal.Decode.
func (j *Engine) Decode(ctx context.Context, r *journaltype.Record) (*journaltype.Record, error) {
	if r == nil {
		return nil, errors.New("decode event: the record is nil")
	}
	if j.raw {
		return r, nil
	}
	at := journaltype.Place{Aggregate: r.Aggregate, Number: r.Number, EventType: r.EventType}
	if err := j.requireEncodings(at, r.Encoding, errReplaced); err != nil {
		return nil, err
	}
	typed := r.EventType != "" || j.Config.EventType == nil
	if r.Encoding == "" && typed {
		return r, nil
	}
	plain := *r
	if r.Encoding != "" {
		payload, err := j.decode(ctx, at, r.Encoding, r.Payload)
		if err != nil {
			return nil, err
		}
		plain.Payload, plain.Encoding = payload, ""
	}
	if !typed {
		var err error
		if plain.EventType, err = j.Config.EventType(&plain); err != nil {
			return nil, &journaltype.EventTypeError{ID: r.Aggregate, Number: r.Number, Err: err}
		}
	}
	return &plain, nil
}

func (j *Engine) decodeSnapshot(ctx context.Context, id aggregate.ID, s *journaltype.Snapshot) (*journaltype.Snapshot, error) {
	if s == nil || j.raw || isMarker(s) {
		return s, nil
	}
	at := journaltype.Place{Aggregate: id, Number: s.Number, Snapshot: true}
	if err := j.requireEncodings(at, s.Encoding, errReplaced); err != nil {
		return nil, err
	}
	if s.Encoding == "" {
		return s, nil
	}
	payload, err := j.decode(ctx, at, s.Encoding, s.Payload)
	if err != nil {
		return nil, err
	}
	return &journaltype.Snapshot{Number: s.Number, Payload: payload, Schema: s.Schema}, nil
}

// encodeEvent returns an event in stored form. An event whose Encoding is set is encoded already.
func (j *Engine) encodeEvent(ctx context.Context, id aggregate.ID, number uint64, e storage.Event) (_ storage.Event, err error) {
	at := journaltype.Place{Aggregate: id, Number: number, EventType: e.Type}
	if e.Encoding == "" && !j.raw {
		if e.Payload, e.Encoding, err = j.encode(ctx, at, e.Payload); err != nil {
			return e, err
		}
	}
	return e, j.requireEncodings(at, e.Encoding, errNotApplied)
}

// encodeSnapshot returns a snapshot in stored form. It does not change s.
func (j *Engine) encodeSnapshot(ctx context.Context, id aggregate.ID, s *journaltype.Snapshot) (*journaltype.Snapshot, error) {
	if s == nil {
		return nil, nil
	}
	at, stored := journaltype.Place{Aggregate: id, Number: s.Number, Snapshot: true}, *s
	if s.Encoding == "" && !j.raw {
		var err error
		if stored.Payload, stored.Encoding, err = j.encode(ctx, at, s.Payload); err != nil {
			return nil, err
		}
	}
	return &stored, j.requireEncodings(at, stored.Encoding, errNotApplied)
}

// withBefore returns a context in which an encoding can ask for the encodings of the last event
// before a commit. If a commit expects no events and there are some, it is refused anyway, and the
// encoding receives that error.
func (j *Engine) withBefore(ctx context.Context, id aggregate.ID, expected uint64) context.Context {
	if len(j.Config.Encodings) == 0 {
		return ctx
	}
	return storage.WithBefore(ctx, func(ctx context.Context) (string, error) {
		if expected > 0 {
			return j.Layout.EncodingAt(ctx, id, expected)
		}
		version, err := j.Layout.Version(ctx, id)
		switch {
		case errors.Is(err, journaltype.ErrNotFound):
			return "", nil
		case err == nil:
			err = &journaltype.ConflictError{ID: id, Actual: version}
		}
		return "", err
	})
}

func (j *Engine) encode(ctx context.Context, at journaltype.Place, payload []byte) (encoded []byte, names string, err error) {
	for _, e := range j.Config.Encodings {
		encoded, applied, err := e.Encode(ctx, at, payload)
		if errors.Is(err, journaltype.ErrConflict) || errors.As(err, new(*journaltype.DeletedError)) {
			return nil, "", err // see withBefore
		}
		if err != nil {
			return nil, "", &journaltype.EncodingError{Place: at, Encoding: e.Name(), Err: err}
		}
		if !applied {
			continue
		}
		payload = encoded
		if names != "" {
			names += ","
		}
		names += e.Name()
	}
	return payload, names, nil
}

// decode uses the stored names alone, so the order of Config.Encodings may change.
func (j *Engine) decode(ctx context.Context, at journaltype.Place, names string, payload []byte) ([]byte, error) {
	for names != "" {
		i := strings.LastIndexByte(names, ',')
		name := names[i+1:]
		names = names[:max(i, 0)]
		e := j.encoding(name)
		if e == nil {
			return nil, &journaltype.EncodingError{Place: at, Encoding: name, Err: errUnknownEncoding}
		}
		var err error
		if payload, err = e.Decode(ctx, at, payload); err != nil {
			return nil, &journaltype.EncodingError{Place: at, Encoding: name, Err: err}
		}
	}
	return payload, nil
}

var (
	errNotApplied  = errors.New("it was not applied, which the journal requires: open the journal with it in Config.Encodings")
	errReplaced    = errors.New("the stored payload lacks it, which the journal requires: another program has written or replaced it")
	errNotArchived = errors.New("the payload to restore lacks it, which the journal requires: archives have payloads as they were stored")
)

var errUnknownEncoding = errors.New("this process does not have it: open the journal with an encoding of that name in Config.Encodings")

func (j *Engine) encoding(name string) journaltype.Encoding {
	for _, e := range j.Config.Encodings {
		if e.Name() == name {
			return e
		}
	}
	return nil
}

// encodingOverhead returns the largest number of bytes that the encodings add to an item.
func (j *Engine) encodingOverhead() int {
	if len(j.Config.Encodings) == 0 {
		return 0
	}
	size := len(AttrEncoding)
	for _, e := range j.Config.Encodings {
		size += len(",") + len(e.Name()) + max(0, e.Overhead())
	}
	return size
}

// EncodingOf returns the names of an item's encodings. It returns false if the attribute is not
// text, because this package did not write it then.
func EncodingOf(it table.Item) (names string, ok bool) {
	v, there := it[AttrEncoding]
	if !there {
		return "", true
	}
	return table.StringOf(v)
}

// SetEncoding sets the attribute for the names of encodings, unless there are none.
func SetEncoding(it table.Item, names string) {
	if names != "" {
		it[AttrEncoding] = table.StringValue(names)
	}
}
