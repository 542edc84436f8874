package catalogue_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/catalogue"
)

func TestAFileThatIsMissingIsNoted(t *testing.T) {
	t.Parallel()
	dir := write(t, shop())
	assert.Empty(t, comparedWith(t, dir, shop()), "each link leads to a file")
	for _, name := range []string{"order/events/order.viewed.v1.json", "order/state.json", "note%7Cs/events/noted.json"} {
		require.NoError(t, os.Remove(filepath.Join(dir, "aggregates", filepath.FromSlash(name))))
	}
	notes, err := catalogue.Write(dir, shop())
	require.NoError(t, err)
	const rest = ": what they describe is compared with nothing, so all its changes count as accepted. " +
		"To fix it, restore them from version control, unless they were deleted to accept changes."
	assert.Equal(t, []string{
		"page aggregates/note%7Cs.md: it links to files that are missing: aggregates/note%7Cs/events/noted.json" + rest,
		"page aggregates/order.md: it links to files that are missing: aggregates/order/events/order.viewed.v1.json, aggregates/order/state.json" + rest,
	}, texts(notes))
	assert.Empty(t, comparedWith(t, dir, shop()))
}
