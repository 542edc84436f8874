package packed

import (
	"errors"
	"fmt"
	"runtime"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/klauspost/compress/zstd"

	"github.com/millrace-dev/millrace/internal/storage"
	"github.com/millrace-dev/millrace/internal/table"
)

// Events and states are compressed if that saves storage and capacity. A compressed value is one
// frame of zstd (RFC 8878) without a checksum and with the size of its content. All limits hold
// for the plain values.

const (
	// compressedFrom is the size of an item beyond which its events or its state are compressed. An
	// item of up to 1 KB costs the same to write, but less to read and to store.
	compressedFrom = 512
	// leastSaving is the part that compression must save: an eighth.
	leastSaving = 8
	// compressedState is the value of attrApplied for a compressed state. No encoding can have this
	// name.
	compressedState = "+zstd"
	// codersAtOnce bounds the memory of the encoders and decoders, which is up to a few 100 KB for
	// each.
	codersAtOnce = 8
	// longestWindow exceeds the size of each value.
	longestWindow = 512 << 10
	// spareBytes let the decoder copy several bytes at once.
	spareBytes = 16
)

// The encoder and the decoder are shared by all journals. Both allow concurrent use. They exist
// before the first test with simulated time begins, because they contain channels.
var (
	encoder = newEncoder()
	decoder = newDecoder()
)

func newEncoder() *zstd.Encoder {
	e, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderCRC(false), zstd.WithSingleSegment(true), zstd.WithAllLitEntropyCompression(true),
		zstd.WithWindowSize(longestWindow), zstd.WithLowerEncoderMem(true), zstd.WithEncoderConcurrency(min(codersAtOnce, runtime.GOMAXPROCS(0))))
	if err != nil {
		panic(err) // the options are constant
	}
	e.EncodeAll([]byte{0}, nil) // makes the encoders
	return e
}

func newDecoder() *zstd.Decoder {
	d, err := zstd.NewReader(nil, zstd.WithDecodeAllCapLimit(true), zstd.WithDecoderMaxMemory(storage.MaxItemBytes),
		zstd.WithDecoderMaxWindow(longestWindow), zstd.WithDecoderLowmem(true), zstd.WithDecoderConcurrency(min(codersAtOnce, runtime.GOMAXPROCS(0))))
	if err != nil {
		panic(err) // the options are constant
	}
	return d
}

// compressEvents compresses the events of items whose sizes were checked.
func (p *layout) compressEvents(items []table.Item) {
	if !p.compresses {
		return
	}
	for _, it := range items {
		compressIn(it, attrSmall)
		compressIn(it, attrLarge)
	}
}

// compressState compresses the state of a snapshot whose size was checked. It does not change a
// state that encodings were applied to.
func (p *layout) compressState(row table.Item) {
	if p.compresses && row[attrApplied] == nil && compressIn(row, attrState) {
		row[attrApplied] = table.StringValue(compressedState)
	}
}

// compressIn compresses a value of an item, and reports whether it did.
func compressIn(it table.Item, name string) bool {
	plain, ok := it[name].(*types.AttributeValueMemberB)
	if !ok || table.ItemSize(it) <= compressedFrom {
		return false
	}
	size := len(plain.Value)
	// A frame can exceed its content by a few bytes.
	frame := encoder.EncodeAll(plain.Value, make([]byte, 0, size+64))
	if len(frame)*leastSaving > size*(leastSaving-1) {
		return false
	}
	it[name] = table.BinaryValue(frame)
	return true
}

// isCompressed reports whether events are compressed. Plain events are an array in CBOR, which
// begins with another byte.
func isCompressed(events []byte) bool {
	return len(events) >= 4 && events[0] == 0x28 && events[1] == 0xB5 && events[2] == 0x2F && events[3] == 0xFD
}

// decompress returns the content of a frame that this package has written. It refuses a content of
// more than limit bytes, before it allocates memory.
func decompress(frame []byte, limit int) ([]byte, error) {
	var header zstd.Header
	if err := header.Decode(frame); err != nil {
		return nil, err
	}
	switch {
	case header.Skippable || !header.HasFCS || header.DictionaryID != 0:
		return nil, errors.New("the frame does not have the size of its content, or needs a dictionary")
	case header.FrameContentSize > uint64(limit): //nolint:gosec // it is positive
		return nil, fmt.Errorf("it would have %d bytes, more than %d", header.FrameContentSize, limit)
	}
	size := int(header.FrameContentSize) //nolint:gosec // not above limit
	plain, err := decoder.DecodeAll(frame, make([]byte, 0, size+spareBytes))
	if err != nil {
		return nil, err
	}
	if len(plain) != size {
		return nil, fmt.Errorf("it has %d bytes instead of %d", len(plain), size)
	}
	return plain, nil
}
