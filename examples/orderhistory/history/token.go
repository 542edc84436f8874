package history

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
)

// ErrInvalidPageToken says that a page token was not given out for this consumer and filter.
var ErrInvalidPageToken = errors.New("invalid page token: take it as it was given, with the same consumer and filter, or start at the first page")

// lastKey is the place after which a page begins: what DynamoDB needs of LastEvaluatedKey beside
// the consumer.
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

const macBytes = 16

// pageToken is the key with a signature over it, the consumer and the filter: whoever changes one
// of them gets an error and not somebody else's orders, or a page with gaps.
func (d *OrderHistoryDao) pageToken(consumerID string, f Filter, k lastKey) string {
	data, _ := json.Marshal(k) // cannot fail
	return base64.RawURLEncoding.EncodeToString(append(d.sign(consumerID, f, data), data...))
}

func (d *OrderHistoryDao) readPageToken(consumerID string, f Filter) (k lastKey, err error) {
	raw, err := base64.RawURLEncoding.Strict().DecodeString(f.PageToken)
	if err != nil || len(raw) < macBytes {
		return k, ErrInvalidPageToken
	}
	mac, data := raw[:macBytes], raw[macBytes:]
	if !hmac.Equal(mac, d.sign(consumerID, f, data)) {
		return k, ErrInvalidPageToken
	}
	return k, json.Unmarshal(data, &k)
}

// sign leaves the page size out: it may change from page to page.
func (d *OrderHistoryDao) sign(consumerID string, f Filter, data []byte) []byte {
	mac := hmac.New(sha256.New, d.config.TokenKey)
	// JSON, so that no two sets of values make the same bytes.
	_ = json.NewEncoder(mac).Encode([]any{consumerID, f.since(), f.until(), f.Status, f.TicketStatus, f.DeliveryStatus, f.words(), data})
	return mac.Sum(nil)[:macBytes]
}
