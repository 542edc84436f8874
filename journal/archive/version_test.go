package archive_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/journal/archive"
)

// archiveOf returns an archive of one aggregate that consists of these lines.
func archiveOf(events int, lines ...string) string {
	body := strings.Join(lines, "\n") + "\n"
	return `{"kind":"archive","format":"millrace-archive","version":1}` + "\n" + body +
		fmt.Sprintf(`{"kind":"end","events":%d,"sha256":"%s"}`+"\n"+`{"kind":"total","aggregates":1,"events":%d}`+"\n", events, digest(body), events)
}

func tombstoneOf(version uint64) string {
	return archiveOf(0, fmt.Sprintf(
		`{"kind":"head","aggregate":{"type":"account","value":"1"},"version":%d,"truncated_before":%d,"deleted_at":1}`, version, version+1))
}

func lastEventOf(version uint64) string {
	return archiveOf(1,
		fmt.Sprintf(`{"kind":"head","aggregate":{"type":"account","value":"1"},"version":%d,"truncated_before":%d,"snapshot":{"number":%d,"payload":""}}`,
			version, version, version),
		fmt.Sprintf(`{"kind":"event","number":%d,"id":"e","type":"t","occurred_at":1}`, version))
}

func TestAnImportRefusesAHugeVersion(t *testing.T) {
	eachPair(t, func(t *testing.T, _, to store) {
		for _, version := range []uint64{1<<53 + 1, 1 << 62, 1<<64 - 2} {
			for _, text := range []string{tombstoneOf(version), lastEventOf(version)} {
				_, err := archive.Import(t.Context(), to.Journal, strings.NewReader(text), archive.ImportOptions{})

				var refused *journal.VersionError
				require.ErrorAs(t, err, &refused, text)
				assert.Equal(t, version, refused.Version)
				assert.Empty(t, to.contents(t))
			}
		}
	})
}

func TestAnImportTakesTheHighestVersion(t *testing.T) {
	for name, text := range map[string]string{"a tombstone": tombstoneOf(1 << 53), "an event": lastEventOf(1 << 53)} {
		t.Run(name, func(t *testing.T) {
			eachPair(t, func(t *testing.T, _, to store) {
				report, err := archive.VerifyArchive(strings.NewReader(text))
				require.NoError(t, err)
				require.Empty(t, report.Faults)

				_, err = archive.Import(t.Context(), to.Journal, strings.NewReader(text), archive.ImportOptions{})

				require.NoError(t, err)
			})
		})
	}
}
