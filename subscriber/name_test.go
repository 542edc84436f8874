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

	"github.com/millrace-dev/millrace/internal/checkpoint"
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
		for _, m := range membership(t, j).Members {
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

func TestNamesCostTheRowOfAGroupLittle(t *testing.T) {
	t.Parallel()
	j := setup(t, 1)
	store, k := checkpoint.New(j), checkpoint.Key{Group: "group", Topic: topic}
	crowd := checkpoint.NewMembership(1, time.Time{})
	for range 30 {
		crowd, _ = crowd.Join(checkpoint.Member{Lease: time.Hour, Heartbeat: checkpoint.NextHeartbeat(0, time.Now(), time.Hour)})
	}
	_, err := store.ChangeMembership(t.Context(), k, checkpoint.Membership{}, crowd)
	require.NoError(t, err)
	config := quick(j)
	config.MemberName = "late"
	subscribe(t, config)
	eventually(t, "it has joined", func() bool { return len(membership(t, j).Members) == 31 })
	for _, m := range membership(t, j).Members {
		assert.Empty(t, m.Name)
	}
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
