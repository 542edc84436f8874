package dedup

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"
	"time"
	"unicode/utf8"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/google/uuid"
	lru "github.com/hashicorp/golang-lru/v2"
)

// KeysConfig configures [Keys]. Only Group is required.
type KeysConfig struct {
	// Table is the name of the table. Default: [DefaultTable].
	Table string
	// Group names the handler to which the keys belong. Each handler of the same messages needs its
	// own group. All processes of a handler use the same group. Limit: 255 bytes, no slash.
	Group string
	// Window is the time for which a key is remembered, from its first use on. A duplicate does not
	// extend it. Choose it longer than the transport may take to repeat a message. Minimum: a
	// millisecond. Default: 24 hours.
	Window time.Duration
	// Now is the clock for Window. The clocks of different processes should differ by less than a
	// fraction of Window. Default: time.Now.
	Now func() time.Time
	// newMark returns unique texts, which identify calls of [Keys.IsDuplicate]. Default: random
	// UUIDs.
	newMark func() string
}

// Keys stores the keys of messages in a DynamoDB table, each for a limited time. It implements
// Watermill's ExpiringKeyRepository. It is safe for concurrent use. Watermill's Deduplicator can
// lose messages: read the package documentation before you use it.
type Keys struct {
	client     Client
	config     KeysConfig
	unresolved *lru.Cache[string, string] // marks of calls that failed, by key
}

// maxUnresolved limits the number of marks of failed calls, of about 200 bytes each, that an outage
// leaves in memory.
const maxUnresolved = 10_000

// NewKeys returns Keys for the handler config.Group. It makes no requests. [CreateTable] creates
// the table.
//
// Errors: [*ConfigError].
func NewKeys(client Client, config KeysConfig) (*Keys, error) {
	if err := checkClient(client); err != nil {
		return nil, err
	}
	if err := setTable(&config.Table, "Table"); err != nil {
		return nil, err
	}
	if err := checkGroup(config.Group); err != nil {
		return nil, err
	}
	if config.Window == 0 {
		config.Window = 24 * time.Hour
	}
	if config.Window < time.Millisecond {
		return nil, &ConfigError{Field: "Window", Reason: "is below a millisecond: use hours, or leave it 0 for the default"}
	}
	if config.Now == nil {
		config.Now = time.Now
	}
	if config.newMark == nil {
		config.newMark = uuid.NewString
	}
	unresolved, err := lru.New[string, string](maxUnresolved)
	if err != nil {
		return nil, err
	}
	return &Keys{client: client, config: config, unresolved: unresolved}, nil
}

// IsDuplicate reports whether a key was used within the window. If it was not, IsDuplicate marks it
// as used. It makes one conditional write. If several calls are made at once, in any processes,
// only one of them returns false. A key may be any text of any length.
//
// After an error the mark may have been written or not. The next call for the key in this process
// replaces the failed call: it returns false, unless another call has marked the key. In another
// process the next call returns true if the mark was written.
//
// Errors: [journal.ErrTableMissing], [journal.ErrThrottled], [journal.ErrAccess], and the errors of
// the context and the SDK.
func (k *Keys) IsDuplicate(ctx context.Context, key string) (bool, error) {
	stored, now := k.stored(key), k.config.Now()
	expires := now.Add(k.config.Window)
	mark, again := k.unresolved.Peek(stored)
	if !again || !k.unresolved.Remove(stored) { // only one call may replace the failed call
		mark = k.config.newMark()
	}
	item := itemKey(stored)
	item[attrMark] = &types.AttributeValueMemberS{Value: mark}
	item[attrExpires] = number(expires.UnixMilli())
	item[attrTTL] = number(expires.Unix() + 1) // never before the window has ended

	// DynamoDB may delete expired items days later, so the condition also compares the time. The
	// SDK repeats a request whose reply was lost, and then finds the mark of this call.
	_, err := k.client.PutItem(ctx, &dynamodb.PutItemInput{
		TableName:                &k.config.Table,
		Item:                     item,
		ConditionExpression:      aws.String("attribute_not_exists(#key) OR #expires <= :now OR #mark = :mark"),
		ExpressionAttributeNames: map[string]string{"#key": attrKey, "#expires": attrExpires, "#mark": attrMark},
		ExpressionAttributeValues: map[string]types.AttributeValue{
			":now": number(now.UnixMilli()), ":mark": &types.AttributeValueMemberS{Value: mark},
		},
	})
	var used *types.ConditionalCheckFailedException
	switch {
	case err == nil:
		return false, nil
	case errors.As(err, &used):
		return true, nil
	default:
		k.unresolved.Add(stored, mark)
		return false, fmt.Errorf("mark key of group %s: %w", k.config.Group, explain(err, k.config.Table))
	}
}

// maxPlainKey is the longest key that is stored as text. It leaves room for the group: DynamoDB
// allows 2,048 bytes.
const maxPlainKey = 1024

// stored returns the key of the item: readable if the key is short text, else a hash. Watermill's
// hashers return checksums as raw bytes, which an attribute of type S cannot hold.
func (k *Keys) stored(key string) string {
	prefix := "key/" + k.config.Group + "/"
	if utf8.ValidString(key) && len(key) <= maxPlainKey {
		return prefix + "=" + key
	}
	sum := sha256.Sum256([]byte(key))
	return prefix + "#" + hex.EncodeToString(sum[:])
}

func number[N int64 | uint64](n N) types.AttributeValue {
	return &types.AttributeValueMemberN{Value: fmt.Sprint(n)}
}

func parse(v types.AttributeValue) (uint64, error) {
	n, ok := v.(*types.AttributeValueMemberN)
	if !ok {
		return 0, fmt.Errorf("%T is not a number", v)
	}
	return strconv.ParseUint(n.Value, 10, 64)
}
