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
	// Group is whose keys they are. Each handler that is to get a message needs a group of its own,
	// and all processes of a handler the same one. At most 255 bytes, no slash.
	Group string
	// Window is how long a key is remembered from its first use on, at least a millisecond. A
	// duplicate does not lengthen it. It should be longer than a transport may take to repeat a
	// message. Default: 24 hours.
	Window time.Duration
	// Now is the clock that windows go by; those of different processes should agree within a
	// fraction of Window. Default: time.Now.
	Now func() time.Time
	// NewMark makes unique texts. Default: random UUIDs.
	NewMark func() string
}

// Keys is an ExpiringKeyRepository of Watermill in a DynamoDB table, one item of some 150 bytes for
// each key. It is safe for concurrent use. Read the package documentation before you use it: it can
// lose messages.
type Keys struct {
	client     Client
	config     KeysConfig
	unresolved *lru.Cache[string, string] // marks of calls that failed, by key
}

// maxUnresolved bounds the memory of an outage, at some 200 bytes each.
const maxUnresolved = 10_000

// NewKeys makes no requests. [CreateTable] makes the table.
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
	if config.NewMark == nil {
		config.NewMark = uuid.NewString
	}
	unresolved, err := lru.New[string, string](maxUnresolved)
	if err != nil {
		return nil, err
	}
	return &Keys{client: client, config: config, unresolved: unresolved}, nil
}

// IsDuplicate reports whether a key was used within the window, and marks it as used if it was not:
// one conditional write. Of many calls at once, in any processes, one gets false. A key is any
// text, of any length.
//
// After an error the key may be marked or not. The next call for it in this process takes the
// failed one's place: it gets false, unless another call was first. In another process it gets
// true, if the mark was written.
//
// Errors: [journal.ErrTableMissing], [journal.ErrThrottled], [journal.ErrAccess], those of the
// context and the SDK.
func (k *Keys) IsDuplicate(ctx context.Context, key string) (bool, error) {
	stored, now := k.stored(key), k.config.Now()
	expires := now.Add(k.config.Window)
	mark, again := k.unresolved.Peek(stored)
	if !again || !k.unresolved.Remove(stored) { // of two calls only one takes the place
		mark = k.config.NewMark()
	}
	item := itemKey(stored)
	item[attrMark] = &types.AttributeValueMemberS{Value: mark}
	item[attrExpires] = number(expires.UnixMilli())
	item[attrTTL] = number(expires.Unix() + 1) // never before the window has ended

	// DynamoDB deletes what has expired within days, so the condition looks at the time as well.
	// And the SDK repeats a call whose reply was lost: what that finds is its own mark.
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
		return false, fmt.Errorf("look up key of group %s: %w", k.config.Group, explain(err, k.config.Table))
	}
}

// maxPlainKey leaves room for a group in DynamoDB's 2,048 bytes.
const maxPlainKey = 1024

// stored is the key as the table has it: readable where it is text. Watermill's own hashers give
// sums as they are, which no attribute of text can hold.
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
		return 0, fmt.Errorf("%T is no number", v)
	}
	return strconv.ParseUint(n.Value, 10, 64)
}
