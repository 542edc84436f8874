package soak

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"strings"

	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/journal/compress"
	"github.com/millrace-dev/millrace/test/draw"
)

// drawEncodings draws the encodings of all journals of a world.
func drawEncodings(r *rand.Rand) ([]journal.Encoding, error) {
	small, err := compress.Gzip(compress.Config{MinBytes: 64, Level: gzip.BestSpeed})
	return draw.Pick(r, nil, nil, []journal.Encoding{small}, []journal.Encoding{bound{}}, []journal.Encoding{small, bound{}}), err
}

// bound writes the place of a payload before it, so that a payload that is read at another place is
// detected.
type bound struct{}

func (bound) Name() string  { return "bound" }
func (bound) Overhead() int { return 100 }

// Encode declines some payloads, so that a journal has both kinds.
func (bound) Encode(_ context.Context, at journal.Place, payload []byte) ([]byte, bool, error) {
	if len(payload)%8 == 0 {
		return nil, false, nil
	}
	return append([]byte(at.String()+"\n"), payload...), true, nil
}

func (bound) Decode(_ context.Context, at journal.Place, encoded []byte) ([]byte, error) {
	payload, ok := bytes.CutPrefix(encoded, []byte(at.String()+"\n"))
	if !ok {
		return nil, errors.New("soak: the payload is from another place")
	}
	return bytes.Clone(payload), nil
}

// plain reverses encodings without the library.
func plain(at journal.Place, names string, payload []byte) ([]byte, error) {
	if names == "" {
		return payload, nil
	}
	rest, name := "", names
	if i := strings.LastIndexByte(names, ','); i >= 0 {
		rest, name = names[:i], names[i+1:]
	}
	switch name {
	case "bound":
		inner, err := bound{}.Decode(context.Background(), at, payload)
		if err != nil {
			return nil, err
		}
		return plain(at, rest, inner)
	case "gzip":
		r, err := gzip.NewReader(bytes.NewReader(payload))
		if err != nil {
			return nil, err
		}
		inner, err := io.ReadAll(r)
		if err != nil {
			return nil, err
		}
		return plain(at, rest, inner)
	}
	return nil, fmt.Errorf("soak: unknown encoding %q", name)
}
