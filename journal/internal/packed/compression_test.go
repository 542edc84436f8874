package packed

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/klauspost/compress/zstd"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/internal/engine"
	"github.com/millrace-dev/millrace/internal/storage"
	"github.com/millrace-dev/millrace/internal/table"
	"github.com/millrace-dev/millrace/journal/journaltype"
)

// compressing returns a layout that compresses.
func compressing() *layout {
	p := layoutOf()
	p.compresses = true
	return p
}

// itemWith returns the item of a commit of one event with a payload.
func itemWith(t testing.TB, p *layout, payload []byte) table.Item {
	t.Helper()
	event, err := packEvent(&storage.Event{Type: "noted", Payload: payload}, nil)
	require.NoError(t, err)
	items, large, err := p.itemsOf(aggregate.ID{Type: "a", Value: "b"}, 1, commitValue("commit"), time.UnixMilli(1), [][]byte{event}, "")
	require.NoError(t, err)
	require.Zero(t, large)
	require.Len(t, items, 1)
	return items[0]
}

// eventsIn returns the stored events of an item, and the name of their attribute.
func eventsIn(it table.Item) (string, []byte) {
	for _, name := range []string{attrSmall, attrLarge} {
		if b, ok := it[name].(*types.AttributeValueMemberB); ok {
			return name, b.Value
		}
	}
	return "", nil
}

func noise(size int) []byte {
	b := make([]byte, size)
	_, _ = rand.NewChaCha8([32]byte{}).Read(b)
	return b
}

func TestOnlyItemsOverAThresholdAreCompressed(t *testing.T) {
	t.Parallel()
	p := compressing()
	bare := table.ItemSize(itemWith(t, p, make([]byte, 300))) - 300
	for size, compressed := range map[int]bool{0: false, compressedFrom: false, compressedFrom + 1: true, projectedBytes: true, projectedBytes + 1: true, 100_000: true} {
		it := itemWith(t, p, make([]byte, max(0, size-bare)))
		plain := table.ItemSize(it)
		if size >= compressedFrom && size <= projectedBytes {
			require.Equal(t, size, plain)
		}
		before, _ := eventsIn(it)
		wasSize := it[attrSize]
		p.compressEvents([]table.Item{it})
		name, events := eventsIn(it)
		assert.Equal(t, compressed, isCompressed(events), size)
		assert.Equal(t, compressed, table.ItemSize(it) < plain, size)
		assert.Equal(t, before, name, "the plain size decides what the tail index contains")
		assert.Equal(t, plain > projectedBytes, name == attrLarge, size)
		assert.Equal(t, wasSize, it[attrSize], "in KB before compression")
	}
}

func TestWhatCompressionDoesNotMakeAnEighthSmallerStaysPlain(t *testing.T) {
	t.Parallel()
	p := compressing()
	compressed := map[bool]int{}
	for zeros := range 600 {
		it := itemWith(t, p, append(noise(2000), make([]byte, zeros)...))
		_, plain := eventsIn(it)
		p.compressEvents([]table.Item{it})
		_, stored := eventsIn(it)
		if isCompressed(stored) {
			assert.LessOrEqual(t, len(stored)*8, len(plain)*7)
		} else {
			assert.Equal(t, plain, stored)
		}
		compressed[isCompressed(stored)]++
	}
	assert.Greater(t, compressed[true], 50)
	assert.Greater(t, compressed[false], 200)
}

func TestTablesOfTheFirstFormatAreNotCompressed(t *testing.T) {
	t.Parallel()
	for format, compresses := range map[int]bool{1: false, engine.CompressedFormat: true} {
		p := layoutOf()
		p.Opened(engine.Descriptor{Format: format}, time.Now())
		it := itemWith(t, p, make([]byte, 5000))
		p.compressEvents([]table.Item{it})
		_, events := eventsIn(it)
		assert.Equal(t, compresses, isCompressed(events))
		row := table.Item{attrState: table.BinaryValue(make([]byte, 5000))}
		p.compressState(row)
		assert.Equal(t, compresses, row[attrApplied] != nil)
	}
}

func TestCompressedEventsAreRead(t *testing.T) {
	t.Parallel()
	p := compressing()
	random := rand.New(rand.NewPCG(1, 1))
	var readers sync.WaitGroup
	for range 200 {
		payload := []byte(strings.Repeat(fmt.Sprint("text", random.IntN(1000)), random.IntN(20_000)))
		payload = append(payload, noise(random.IntN(50_000))...)
		it := itemWith(t, p, payload)
		readers.Add(1)
		go func() {
			defer readers.Done()
			p.compressEvents([]table.Item{it})
			parsed, err := p.parse(it)
			if assert.NoError(t, err) {
				records, err := p.recordsOf(parsed)
				assert.NoError(t, err)
				assert.Len(t, records, 1)
				assert.True(t, bytes.Equal(payload, records[0].Payload))
			}
		}()
	}
	readers.Wait()
}

func TestACompressedStateIsReadAsItWas(t *testing.T) {
	t.Parallel()
	p := compressing()
	frame := encoder.EncodeAll(make([]byte, 9000), nil)
	for name, state := range map[string][]byte{
		"text": []byte(strings.Repeat("state ", 900)), "empty": {}, "noise": noise(5000),
		"a frame": append(frame, make([]byte, 5000)...), // a state may be a frame of its own
		"short":   frame,
	} {
		for _, encoding := range []string{"", "gzip"} {
			s := &journaltype.Snapshot{Number: 7, Payload: state, Schema: 2, Encoding: encoding}
			row := p.rowOf(p.snapshotKey(aggregate.ID{Type: "a", Value: "b"}, latestSnapshot), s, 7, commitValue("c"))
			plain := table.ItemSize(row)
			for range 2 { // again changes nothing
				p.compressState(row)
			}
			compressed := (name == "text" || name == "a frame") && encoding == ""
			assert.Equal(t, compressed, table.ItemSize(row) < plain, name)
			read, err := p.snapshotOf(row)
			require.NoError(t, err)
			assert.Equal(t, s, read.snapshot, name)
		}
	}
}

// frameOf returns a frame with the given size of its content in the header.
func frameOf(content []byte, claimed uint32) []byte {
	frame := binary.LittleEndian.AppendUint32(nil, 0xFD2FB528)
	frame = append(frame, 0xA0) // a single segment with a size of four bytes
	frame = binary.LittleEndian.AppendUint32(frame, claimed)
	block := uint32(1 | 1<<1 | len(content)<<3) //nolint:gosec // a last block that repeats one byte
	return append(frame, byte(block), byte(block>>8), byte(block>>16), content[0])
}

// damagedFrames are values that begin as a frame does and cannot be read, by what is wrong.
func damagedFrames(t testing.TB) map[string][]byte {
	t.Helper()
	whole := encoder.EncodeAll([]byte(strings.Repeat("some text ", 90)), nil)
	streaming, err := zstd.NewWriter(nil)
	require.NoError(t, err)
	var unsized bytes.Buffer
	streaming.Reset(&unsized)
	_, err = streaming.Write(make([]byte, 500))
	require.NoError(t, err)
	require.NoError(t, streaming.Flush()) // from now on the size is unknown
	require.NoError(t, streaming.Close())
	zeros := make([]byte, 64<<10)
	return map[string][]byte{
		"only the magic number":     whole[:4],
		"half":                      whole[:len(whole)/2],
		"all but a byte":            whole[:len(whole)-1],
		"garbage":                   append([]byte{0x28, 0xB5, 0x2F, 0xFD}, noise(300)...),
		"without a size":            unsized.Bytes(),
		"two frames":                append(bytes.Clone(whole), whole...),
		"a small second frame":      append(bytes.Clone(whole), frameOf(zeros[:5], 5)...),
		"a bomb":                    encoder.EncodeAll(make([]byte, 100<<20), nil),
		"more than an item":         encoder.EncodeAll(make([]byte, storage.MaxItemBytes+1), nil),
		"less than it claims":       frameOf(zeros[:100], 900),
		"more than it claims":       frameOf(zeros, 900),
		"it claims 4 GB":            frameOf(zeros, 1<<32-1),
		"an unknown dictionary":     {0x28, 0xB5, 0x2F, 0xFD, 0x21, 7, 10, 0x51, 0, 0, 0},
		"content that is no events": encoder.EncodeAll(make([]byte, 900), nil),
	}
}

// allocated returns how many bytes a function allocates.
func allocated(do func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	do()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// It is not parallel, because it measures what the process allocates.
func TestADamagedFrameIsACorruptItem(t *testing.T) {
	p := compressing()
	for name, frame := range damagedFrames(t) {
		require.True(t, isCompressed(frame), name)
		for _, attribute := range []string{attrSmall, attrLarge} {
			it := p.commitItem(aggregate.ID{Type: "a", Value: "b"}, 1, commitValue("commit"), time.UnixMilli(0), "")
			it[attrCount], it[attribute] = table.NumberValue(1), table.BinaryValue(frame)
			if attribute == attrLarge {
				it[attrSize] = table.NumberValue(999_999)
			}
			parsed, err := p.parse(it)
			require.NoError(t, err)
			used := allocated(func() { _, err = p.recordsOf(parsed) })
			var corrupt *journaltype.CorruptItemError
			require.ErrorAs(t, err, &corrupt, name)
			assert.EqualValues(t, 1, corrupt.Number, name)
			assert.Less(t, used, uint64(storage.MaxItemBytes+300<<10), name)
		}
		if name == "content that is no events" {
			continue
		}
		row := p.rowOf(p.snapshotKey(aggregate.ID{Type: "a", Value: "b"}, latestSnapshot), &journaltype.Snapshot{Number: 1, Payload: frame}, 1, commitValue("c"))
		row[attrApplied] = table.StringValue(compressedState)
		var err error
		used := allocated(func() { _, err = p.snapshotOf(row) })
		require.ErrorAs(t, err, new(*journaltype.CorruptItemError), name)
		assert.Less(t, used, uint64(storage.MaxItemBytes+300<<10), name)
	}
}

// The bound on a page of the tail counts the plain size that an item states. An item cannot exceed
// it.
func TestEventsAreNotLargerThanTheirItemStates(t *testing.T) {
	t.Parallel()
	p := compressing()
	it := itemWith(t, p, make([]byte, 50_000))
	p.compressEvents([]table.Item{it})
	_, frame := eventsIn(it)
	for _, change := range []table.Item{
		{attrSize: table.NumberValue(48)},
		{attrSize: nil},
		{attrSize: table.NumberValue(0)},
		{attrLarge: nil, attrSmall: table.BinaryValue(frame)}, // an item of up to 1 KB
	} {
		forged := table.Item{}
		for name, value := range it {
			forged[name] = value
		}
		for name, value := range change {
			if forged[name] = value; value == nil {
				delete(forged, name)
			}
		}
		parsed, err := p.parse(forged)
		require.NoError(t, err)
		_, err = p.recordsOf(parsed)
		require.ErrorAs(t, err, new(*journaltype.CorruptItemError))
		assert.ErrorContains(t, err, "it would have 50")
	}
	parsed, err := p.parse(it)
	require.NoError(t, err)
	records, err := p.recordsOf(parsed)
	require.NoError(t, err)
	assert.Len(t, records[0].Payload, 50_000)
}

// Any value that begins as a frame does is read as events or as a corrupt item.
func FuzzCompressedEvents(f *testing.F) {
	for _, frame := range damagedFrames(f) {
		if len(frame) < 10_000 {
			f.Add(frame, uint16(1))
		}
	}
	p := compressing()
	it := itemWith(f, p, make([]byte, 2000))
	p.compressEvents([]table.Item{it})
	_, frame := eventsIn(it)
	f.Add(frame, uint16(3))
	f.Fuzz(func(t *testing.T, rest []byte, size uint16) {
		frame := append([]byte{0x28, 0xB5, 0x2F, 0xFD}, rest...)
		if isCompressed(rest) {
			frame = rest
		}
		it := p.commitItem(aggregate.ID{Type: "a", Value: "b"}, 1, commitValue("commit"), time.UnixMilli(0), "")
		it[attrCount], it[attrLarge], it[attrSize] = table.NumberValue(1), table.BinaryValue(frame), table.NumberValue(int(size))
		parsed, err := p.parse(it)
		require.NoError(t, err)
		if plain, err := decompress(frame, int(size)<<10); err == nil {
			require.LessOrEqual(t, len(plain), int(size)<<10)
		}
		if _, err := p.recordsOf(parsed); err != nil {
			require.ErrorAs(t, err, new(*journaltype.CorruptItemError))
		}
	})
}
