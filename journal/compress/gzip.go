package compress

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/millrace-dev/millrace/journal"
)

// ErrTooLong reports that a decompressed payload is longer than [Config.MaxBytes].
var ErrTooLong = errors.New("payload too long when decompressed")

// ConfigError reports a setting that cannot work. Field names the setting, and Reason says why.
type ConfigError struct{ Field, Reason string }

func (e *ConfigError) Error() string { return fmt.Sprintf("compress config: %s %s", e.Field, e.Reason) }

// Config configures [Gzip].
type Config struct {
	// MinBytes is the size from which payloads are compressed. Shorter ones are stored as they are,
	// because DynamoDB bills by the KB. Default: 1,024; a negative value compresses all payloads.
	MinBytes int
	// Level is a level of compress/gzip, from gzip.BestSpeed to gzip.BestCompression, or
	// gzip.HuffmanOnly. Default: 0, which is gzip.DefaultCompression and not gzip.NoCompression.
	Level int
	// MaxBytes is the largest size of a decompressed payload. It protects from a forged item of a
	// few KB that would decompress to gigabytes. Longer payloads are not compressed. Default: 16
	// MiB, which is forty times the size of an item. A subscriber can hold one such payload in each
	// lane.
	MaxBytes int
}

const (
	defaultMinBytes = 1 << 10
	defaultMaxBytes = 16 << 20
)

// Gzip returns an encoding that compresses with DEFLATE in the gzip format. The checksum of this
// format detects damage. A payload that would not become smaller is stored as it is. The name of
// the encoding is "gzip".
//
// Errors: [*ConfigError].
func Gzip(c Config) (journal.Encoding, error) {
	if c.MinBytes == 0 {
		c.MinBytes = defaultMinBytes
	}
	if c.Level == 0 {
		c.Level = gzip.DefaultCompression
	}
	if c.MaxBytes == 0 {
		c.MaxBytes = defaultMaxBytes
	}
	if c.Level < gzip.HuffmanOnly || c.Level > gzip.BestCompression {
		return nil, &ConfigError{"Level", fmt.Sprintf("is %d: use %d to %d, or 0 for the default", c.Level, gzip.HuffmanOnly, gzip.BestCompression)}
	}
	if c.MaxBytes < 0 {
		return nil, &ConfigError{"MaxBytes", "is negative: leave it 0 for the default"}
	}
	return &encoding{config: c}, nil
}

type encoding struct {
	config  Config
	writers sync.Pool // *gzip.Writer, of 800 KB each
	readers sync.Pool // *gzip.Reader
}

func (*encoding) Name() string  { return "gzip" }
func (*encoding) Overhead() int { return 0 }

// Encode returns the same bytes for the same payload.
func (e *encoding) Encode(_ context.Context, _ journal.Place, payload []byte) ([]byte, bool, error) {
	if len(payload) < e.config.MinBytes || len(payload) > e.config.MaxBytes {
		return nil, false, nil
	}
	w, ok := e.writers.Get().(*gzip.Writer)
	if !ok {
		// Gzip has validated the level.
		w, _ = gzip.NewWriterLevel(nil, e.config.Level)
	}
	defer e.writers.Put(w)
	out := bytes.NewBuffer(make([]byte, 0, len(payload)/2+64))
	w.Reset(out)
	if _, err := w.Write(payload); err != nil {
		return nil, false, err
	}
	if err := w.Close(); err != nil {
		return nil, false, err
	}
	if out.Len() >= len(payload) {
		return nil, false, nil
	}
	return out.Bytes(), true, nil
}

func (e *encoding) Decode(_ context.Context, _ journal.Place, encoded []byte) ([]byte, error) {
	in := bytes.NewReader(encoded)
	r, ok := e.readers.Get().(*gzip.Reader)
	if !ok {
		r = new(gzip.Reader)
	}
	defer e.readers.Put(r)
	if err := r.Reset(in); err != nil {
		return nil, damaged(err)
	}
	r.Multistream(false)
	var out bytes.Buffer
	// One more byte than allowed shows that the payload is too long.
	if _, err := out.ReadFrom(io.LimitReader(r, int64(e.config.MaxBytes)+1)); err != nil {
		return nil, damaged(err)
	}
	if out.Len() > e.config.MaxBytes {
		return nil, fmt.Errorf("%w: it has more than %d bytes: if it is not forged, raise Config.MaxBytes", ErrTooLong, e.config.MaxBytes)
	}
	if in.Len() > 0 {
		return nil, damaged(fmt.Errorf("%d bytes follow its end", in.Len()))
	}
	return out.Bytes(), nil
}

func damaged(err error) error {
	return fmt.Errorf("the payload is damaged, restore the item from a backup: %w", err)
}
