package soak

import (
	"bytes"
	"context"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/fxamacker/cbor/v2"
	"github.com/google/uuid"
	"github.com/klauspost/compress/zstd"
)

// packedEvent is an event in the item of a commit.
type packedEvent struct {
	_        struct{} `cbor:",toarray"`
	Type     string
	Payload  []byte
	Metadata [][]byte
	ID       any
	Millis   *int64
	Encoding string
}

var zstdReader = func() *zstd.Decoder {
	d, err := zstd.NewReader(nil)
	if err != nil {
		panic(err) // there are no options
	}
	return d
}()

// zstdContent returns the content of a frame of zstd, and any other value as it is.
func zstdContent(stored []byte) ([]byte, error) {
	if !bytes.HasPrefix(stored, []byte{0x28, 0xB5, 0x2F, 0xFD}) {
		return stored, nil
	}
	return zstdReader.DecodeAll(stored, nil)
}

// packedRows returns the events in the items of commits. docs/reference/schema.md describes them.
func (w *running) packedRows(ctx context.Context, only string, see func(id string, r row)) error {
	return w.scanPacked(ctx, "journal", only, func(id, place string, it map[string]types.AttributeValue) {
		first, count := numeric(it["skey"]), numeric(it["n"])
		stored, ok := it["e"].(*types.AttributeValueMemberB)
		if !ok {
			stored, ok = it["E"].(*types.AttributeValueMemberB)
		}
		if !ok || !isCommit(place) {
			return // removed, or the item of a command
		}
		plain, err := zstdContent(stored.Value)
		if err != nil {
			w.truth.report(Lost, "the events from %d on of thing %s cannot be decompressed: %v", first, id, err)
			return
		}
		var events []packedEvent
		if err := cbor.Unmarshal(plain, &events); err != nil || uint64(len(events)) != count {
			w.truth.report(Lost, "the %d events from %d on of thing %s cannot be read, %d are there: %v", count, first, id, len(events), err)
			return
		}
		for i, e := range events {
			r := row{number: first + uint64(i), last: first + count - 1, commitID: packedCommit(it["c"])}
			if w.read(&r, id, e.Type, e.Encoding, e.Payload) {
				see(id, r)
			}
		}
	})
}

// packedHeads returns heads that are computed from the first and the last item of each thing.
func (w *running) packedHeads(ctx context.Context) (map[string]head, error) {
	all := map[string]head{}
	err := w.scanPacked(ctx, "journal", "", func(id, place string, it map[string]types.AttributeValue) {
		if !isCommit(place) {
			return
		}
		h, first, count := all[id], numeric(it["skey"]), numeric(it["n"])
		if first == 1 {
			h.truncatedBefore = numeric(it["b"])
		}
		if first != h.version+1 {
			w.truth.report(Gap, "thing %s has an item of event %d where %d should be", id, first, h.version+1)
		}
		if placeholder := count == 0 && it["d"] == nil; placeholder && h.version == 0 {
			return // there are only commands without events
		}
		h.version = first + count - 1
		if h.deleted {
			w.truth.report(Wrong, "thing %s has an item of event %d after its tombstone", id, first)
		}
		h.deleted = it["d"] != nil
		all[id] = h
	})
	if err != nil {
		return nil, err
	}
	return all, w.scanPacked(ctx, "snapshot", "", func(id, _ string, it map[string]types.AttributeValue) {
		if h, ok := all[id]; ok && it["s"] != nil {
			h.states++
			all[id] = h
		}
	})
}

// isCommit reports whether the number of an item is that of a commit or a tombstone.
func isCommit(number string) bool { return !strings.ContainsAny(number, "-.") }

func packedCommit(v types.AttributeValue) string {
	switch v := v.(type) {
	case *types.AttributeValueMemberB:
		id, _ := uuid.FromBytes(v.Value)
		return id.String()
	case *types.AttributeValueMemberS:
		return strings.TrimPrefix(v.Value, "=")
	}
	return ""
}

// scanPacked returns the items of all things in a table, or of one of them. The items of a thing
// are in the order of their numbers.
func (w *running) scanPacked(
	ctx context.Context, table, only string, see func(id, number string, it map[string]types.AttributeValue),
) error {
	input := &dynamodb.ScanInput{TableName: &table, ConsistentRead: aws.Bool(true)}
	if only != "" {
		input.FilterExpression = aws.String("pkey = :thing")
		input.ExpressionAttributeValues = map[string]types.AttributeValue{
			":thing": &types.AttributeValueMemberS{Value: things.Type() + "/" + only},
		}
	}
	pages := dynamodb.NewScanPaginator(w.Client, input)
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return err
		}
		for _, it := range page.Items {
			key, _ := it["pkey"].(*types.AttributeValueMemberS)
			number, _ := it["skey"].(*types.AttributeValueMemberN)
			if key == nil || number == nil {
				continue
			}
			// otherwise it is the descriptor
			if id, ok := strings.CutPrefix(key.Value, things.Type()+"/"); ok {
				see(id, number.Value, it)
			}
		}
	}
	return nil
}
