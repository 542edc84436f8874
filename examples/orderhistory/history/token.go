package history

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
)

// ErrInvalidPageToken reports a page token that was not returned for this consumer and filter.
var ErrInvalidPageToken = errors.New("invalid page token: send it as it was returned, with the same consumer and filter, or start at the first page")

// lastKey is the key after which a page begins: the parts of LastEvaluatedKey other than the
// consumer.
type lastKey struct {
	OrderID      string `json:"o"`
	CreationTime int64  `json:"t"`
}

func (k lastKey) item(consumerID string) attributes {
	return attributes{attrOrderID: text(k.OrderID), attrConsumerID: text(consumerID), attrCreationTime: number(k.CreationTime)}
}

func lastKeyOf(item attributes) lastKey {
	return lastKey{textOf(item[attrOrderID]), numberOf(item[attrCreationTime])}
}

// within reports whether the query of a filter can begin after the key. DynamoDB refuses a query
// that begins elsewhere.
func (k lastKey) within(f Filter) bool {
	return k.OrderID != "" && len(k.OrderID) <= maxKey && k.CreationTime >= f.since() && k.CreationTime < f.until()
}

const checksumBytes = 16

// pageToken returns a token with the key, and a checksum of the key, the consumer and the filter.
//
// The checksum detects mistakes: a token that was cut off, or sent with another consumer or filter,
// would lead to a page with gaps. It has no secret, since there is nothing to protect: a query
// reads the orders of the consumer in the request, wherever it begins. So every process accepts the
// tokens of every other process, also after a restart.
func pageToken(consumerID string, f Filter, k lastKey) string {
	data, _ := json.Marshal(k) // cannot fail
	return base64.RawURLEncoding.EncodeToString(append(checksum(consumerID, f, data), data...))
}

// readPageToken returns the key in a token. Errors: [ErrInvalidPageToken].
func readPageToken(consumerID string, f Filter) (k lastKey, err error) {
	raw, err := base64.RawURLEncoding.Strict().DecodeString(f.PageToken)
	if err != nil || len(raw) < checksumBytes {
		return k, ErrInvalidPageToken
	}
	sum, data := raw[:checksumBytes], raw[checksumBytes:]
	if !bytes.Equal(sum, checksum(consumerID, f, data)) || json.Unmarshal(data, &k) != nil || !k.within(f) {
		return lastKey{}, ErrInvalidPageToken
	}
	return k, nil
}

// checksum ignores the page size, which may change from page to page.
func checksum(consumerID string, f Filter, data []byte) []byte {
	// JSON, so that different values have different bytes.
	values, _ := json.Marshal([]any{consumerID, f.since(), f.until(), f.Status, f.TicketStatus, f.DeliveryStatus, f.words(), data})
	sum := sha256.Sum256(values)
	return sum[:checksumBytes]
}
