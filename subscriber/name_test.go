package subscriber_test

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/dynamotest"
	"github.com/millrace-dev/millrace/internal/checkpoint"
	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/subscriber"
)

func TestAMemberIsNamedByHostAndProcess(t *testing.T) {
	t.Parallel()
	j := setup(t, 1)
	config := quick(j)
	subscribe(t, config)
	config.MemberName = "billing-1"
	subscribe(t, config)

	var names []string
	eventually(t, "both have joined", func() bool {
		names = nil
		for _, m := range roster(t, j).Members {
			names = append(names, m.Name)
		}
		return len(names) == 2
	})
	assert.Contains(t, names, "billing-1")
	assert.Contains(t, strings.Join(names, " "), fmt.Sprintf("/%d", os.Getpid()))
}

func TestALongHostNameKeepsItsEnd(t *testing.T) {
	t.Parallel()
	assert.Equal(t, "host/7", subscriber.MemberName("host", 7))
	assert.Equal(t, "/7", subscriber.MemberName("", 7))
	long := subscriber.MemberName("orders-projection-production-7d9f8b6c5-x2x4z", 123456)
	assert.Equal(t, "roduction-7d9f8b6c5-x2x4z/123456", long)
	assert.Len(t, long, 32)
	for cut := range 8 {
		name := subscriber.MemberName(strings.Repeat("ü", 20)+strings.Repeat("x", cut), 1)
		assert.True(t, utf8.ValidString(name))
		assert.LessOrEqual(t, len(name), 32)
	}
}

func TestNamesOfFiftyMembersCostTwoWriteUnitsOfAHeartbeat(t *testing.T) {
	t.Parallel()
	db := dynamotest.New(t)
	require.NoError(t, journal.Create(t.Context(), db.Client(), journal.Config{Shards: 16}))
	j := open(t, db.Client())
	store := checkpoint.New(j)
	cost := func(group, name string) float64 {
		crowd := checkpoint.NewRoster(16, time.Time{})
		for range 50 {
			crowd, _ = crowd.Join(checkpoint.Member{Lease: 10 * time.Second, Token: 1 << 63, Name: name})
		}
		k := checkpoint.Key{Group: group, Topic: topic}
		r, err := store.ChangeRoster(t.Context(), k, checkpoint.Roster{}, crowd)
		require.NoError(t, err)
		recording := db.Record()
		defer recording.Stop()
		_, err = store.Beat(t.Context(), k, r, 1, 1)
		require.NoError(t, err)
		_, write := recording.Units()
		return write
	}

	assert.LessOrEqual(t, cost("named", strings.Repeat("n", 32))-cost("nameless", ""), 2.0)
}

func TestANameThatIsTooLongIsRefused(t *testing.T) {
	t.Parallel()
	config := quick(setup(t, 1))
	for _, name := range []string{strings.Repeat("n", 33), "\xff"} {
		config.MemberName = name
		_, err := subscriber.NewSubscriber(config, nil)
		var refused *subscriber.ConfigError
		require.ErrorAs(t, err, &refused)
		assert.Equal(t, "MemberName", refused.Field)
	}
}
