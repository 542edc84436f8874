package subscriber_test

import (
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/dynamotest"
	"github.com/millrace-dev/millrace/internal/testdb"
	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/subscriber"
)

// inSeconds is the config of tables whose times are in seconds.
var inSeconds = journal.Config{Layout: journal.Classic, Shards: 1, Classic: journal.ClassicOptions{OccurredAtUnit: time.Second}}

// Events are dated at the beginning of their second, which is before the start of the group.
func TestAGroupThatStartsNowMissesNothingInAJournalOfSeconds(t *testing.T) {
	t.Parallel()
	client := testdb.Client(t)
	require.NoError(t, journal.Create(t.Context(), client, inSeconds))
	present := time.Now().Truncate(time.Second)
	config := quick(at(t, client, func() time.Time { return present.Add(300 * time.Millisecond) }))
	config.Start = subscriber.Now()
	_, messages := subscribe(t, config)
	write(t, at(t, client, func() time.Time { return present.Add(500 * time.Millisecond) }), "x", 0, 1)
	assert.Equal(t, expect("x", 1, 1), receiveAll(t, messages, 1))
}

// The horizon of the trailing read is in the middle of a second when the live read passes it. The
// index then shows an event of the second before one that it has shown already.
func TestATrailingReadReadsTheWholeSecondOfItsHorizon(t *testing.T) {
	t.Parallel()
	db := dynamotest.New(t)
	require.NoError(t, journal.Create(t.Context(), db.Client(), inSeconds))
	var shown atomic.Bool
	db.Inject(dynamotest.Hide(func(item map[string]types.AttributeValue) bool {
		sort, _ := item["skey"].(*types.AttributeValueMemberS)
		return !shown.Load() && strings.HasPrefix(sort.Value, topic+"-a-")
	}), dynamotest.Index("journal-tail-index"))
	second := time.Now().Truncate(time.Second)
	writeAt := func(id string, after time.Duration) {
		write(t, at(t, db.Client(), func() time.Time { return second.Add(after) }), id, 0, 1)
	}
	writeAt("b", 0)
	writeAt("a", 600*time.Millisecond)
	writeAt("c", 1100*time.Millisecond)
	var now atomic.Int64
	now.Store(second.UnixMilli() + 1400)
	config := quick(at(t, db.Client(), func() time.Time { return time.UnixMilli(now.Load()) }))
	config.Timing.TrailingDelay = 900 * time.Millisecond
	_, messages := subscribe(t, config)
	assert.ElementsMatch(t, append(expect("b", 1, 1), expect("c", 1, 1)...), receiveAll(t, messages, 2))
	shown.Store(true)
	now.Add(200)
	assert.Equal(t, expect("a", 1, 1), receiveAll(t, messages, 1))
}
