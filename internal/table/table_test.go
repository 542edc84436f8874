package table

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/journal/journaltype"
)

func TestTimesThatUsersSeeAreInUTC(t *testing.T) {
	t.Parallel()
	now := time.Unix(1, 999_999).In(time.FixedZone("east", 3600))
	table := &Table{Config: &Settings{ClassicOptions: journaltype.ClassicOptions{OccurredAtUnit: time.Millisecond}, Now: func() time.Time { return now }}}

	require.Equal(t, time.Unix(1, 0).UTC(), table.Date().OccurredAt)
}
