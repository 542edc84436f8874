package journaltype

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/millrace-dev/millrace/aggregate"
)

func TestRecordsAreEqualWheneverTheyWereWritten(t *testing.T) {
	t.Parallel()
	a := Record{Aggregate: aggregate.ID{Type: "user", Value: "1"}, Number: 1, OccurredAt: time.UnixMilli(1), WrittenAt: time.UnixMilli(1)}
	b := a
	b.WrittenAt = time.UnixMilli(2)
	assert.True(t, a.Equal(&b), "an event and its copy in another journal")
	b.OccurredAt = time.UnixMilli(2)
	assert.False(t, a.Equal(&b))
}
