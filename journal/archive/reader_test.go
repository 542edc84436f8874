package archive_test

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/journal/archive"
)

// small is an archive of three aggregates: one with 3 events and a snapshot, a tombstone, and one
// with 100 events on two pages. It also lists an aggregate that was left out.
func small(t *testing.T) []byte {
	t.Helper()
	s, _ := pair(t)
	s.write(t, account("1"), 1, 3, stateOf(3))
	s.write(t, account("2"), 1, 2)
	require.NoError(t, s.Delete(t.Context(), account("2"), 2, journal.RemoveOptions{}))
	s.write(t, account("3"), 1, 100)
	s.write(t, account("4"), 1, 2)
	s.lose(t, account("4"), 1)
	text, _ := s.exportWithout(t, account("4"))
	return text
}

func TestAnyChangedByteIsFound(t *testing.T) {
	t.Parallel()
	text := small(t)
	for i := bytes.IndexByte(text, '\n') + 1; i < len(text); i += 1 + i/100 {
		damaged := bytes.Clone(text)
		damaged[i] ^= 1
		report, err := archive.VerifyArchive(bytes.NewReader(damaged))
		require.NoError(t, err)
		assertDamaged(t, report, "byte %d of %q", i, text[max(0, i-20):min(len(text), i+20)])
	}
}

func TestAnyLineThatIsGoneDoubledOrMovedIsFound(t *testing.T) {
	t.Parallel()
	lines := strings.SplitAfter(string(small(t)), "\n")
	lines = lines[:len(lines)-1]
	verify := func(lines []string) archive.Report {
		report, err := archive.VerifyArchive(strings.NewReader(strings.Join(lines, "")))
		require.NoError(t, err)
		return report
	}
	require.Len(t, verify(lines).Faults, 1)
	for i, line := range lines {
		assertDamaged(t, verify(slices.Delete(slices.Clone(lines), i, i+1)), "without line %d", i+1)
		assertDamaged(t, verify(slices.Insert(slices.Clone(lines), i, line)), "with line %d twice", i+1)
		if i > 0 {
			swapped := slices.Clone(lines)
			swapped[i], swapped[i-1] = swapped[i-1], swapped[i]
			assertDamaged(t, verify(swapped), "with line %d before line %d", i+1, i)
		}
	}
}

// assertDamaged requires a fault other than that an aggregate was left out.
func assertDamaged(t *testing.T, report archive.Report, what string, args ...any) {
	t.Helper()
	assert.True(t, slices.ContainsFunc(report.Faults, func(f archive.Fault) bool { return f.Kind == archive.Unreadable }),
		append([]any{what}, args...)...)
}

func TestAFaultIsNamedByItsLineAndTheRestIsLookedAt(t *testing.T) {
	t.Parallel()
	lines := strings.SplitAfter(string(small(t)), "\n")
	first := slices.IndexFunc(lines, func(l string) bool { return strings.Contains(l, `"value":"3"`) })
	lines[first+50] = "{\n"
	report, err := archive.VerifyArchive(strings.NewReader(strings.Join(lines, "")))
	require.NoError(t, err)
	require.Len(t, report.Faults, 2)
	i := slices.IndexFunc(report.Faults, func(f archive.Fault) bool { return f.Kind == archive.Unreadable })
	var line *archive.LineError
	require.ErrorAs(t, report.Faults[i], &line)
	assert.Equal(t, first+51, line.Line)
	assert.Equal(t, account("3"), report.Faults[i].Aggregate)
	assert.EqualValues(t, 2, report.Aggregates)
	assert.EqualValues(t, 1, report.LeftOut)
}

func TestWhatAnArchiveCannotSayIsRefused(t *testing.T) {
	t.Parallel()
	const header = `{"kind":"archive","format":"millrace-archive","version":1}` + "\n"
	const leftOut = `{"kind":"left_out","reason":"r"}` + "\n"
	head := func(rest string) string {
		return header + `{"kind":"head","aggregate":{"type":"a","value":"1"},` + rest + "}\n"
	}
	for name, c := range map[string]struct {
		text, reason string
		kind         error
	}{
		"an empty file":             {"", "ends before its total", archive.ErrTorn},
		"no total":                  {header, "ends before its total", archive.ErrTorn},
		"a torn line":               {header + `{"kind":"to`, "ends within it", archive.ErrTorn},
		"a torn header":             {`{"kind":"arch`, "ends within it", archive.ErrTorn},
		"another file":              {"%PDF-1.4\n", "does not begin like", archive.ErrNotArchive},
		"a torn file of other kind": {"%P", "does not begin like", archive.ErrNotArchive},
		"a later version":           {strings.Replace(header, "1}", "2}", 1), "format version is 2", archive.ErrNotArchive},
		"an unknown kind":           {header + `{"kind":"new"}` + "\n", `"new"`, archive.ErrDamaged},
		"an event alone":            {header + `{"kind":"event","number":1}` + "\n", "without a head", archive.ErrDamaged},
		"a sum alone":               {header + `{"kind":"sum"}` + "\n", "without a head", archive.ErrDamaged},
		"no aggregate":              {header + `{"kind":"head","version":1}` + "\n", "names no aggregate", archive.ErrDamaged},
		"an invalid id":             {header + `{"kind":"head","version":1,"aggregate":{"type":"a"}}` + "\n", "empty", archive.ErrDamaged},
		"version 0":                 {head(`"version":0`), "not a valid version", archive.ErrDamaged},
		"a version without another": {head(`"version":18446744073709551615`), "not a valid version", archive.ErrDamaged},
		"a negative version":        {head(`"version":-1`), "not the JSON of an archive", archive.ErrDamaged},
		"truncated beyond the end":  {head(`"version":3,"truncated_before":5`), "beyond its version", archive.ErrDamaged},
		"a tombstone with events":   {head(`"version":3,"deleted_at":1`), "tombstone", archive.ErrDamaged},
		"a snapshot ahead":          {head(`"version":3,"snapshot":{"number":4}`), "beyond its version", archive.ErrDamaged},
		"the wrong first event":     {head(`"version":3`) + `{"kind":"event","number":2}` + "\n", "event 2 is in the place of event 1", archive.ErrDamaged},
		"an event beyond the head": {
			head(`"version":1`) + `{"kind":"event","number":1}` + "\n" + `{"kind":"event","number":2}` + "\n", "beyond the head", archive.ErrDamaged,
		},
		"a payload not in base64":        {head(`"version":1`) + `{"kind":"event","number":1,"payload":"%"}` + "\n", "not the JSON of an archive", archive.ErrDamaged},
		"a line too long":                {header + strings.Repeat("x", 5<<20) + "\n", "a line has at most", archive.ErrDamaged},
		"left out without a reason":      {header + `{"kind":"left_out"}` + "\n", "no reason", archive.ErrDamaged},
		"left out within another":        {head(`"version":1`) + `{"kind":"left_out","reason":"r"}` + "\n", "no end line", archive.ErrDamaged},
		"an event of what was left out":  {header + leftOut + `{"kind":"event","number":1}` + "\n", "beyond the head", archive.ErrDamaged},
		"a page of what was left out":    {header + leftOut + `{"kind":"sum","sha256":"` + digest(leftOut) + `"}` + "\n", "a sum of an aggregate that was left out", archive.ErrDamaged},
		"wrong total of left out":        {header + `{"kind":"total","left_out":1}` + "\n", "1 left out", archive.ErrDamaged},
		"wrong totals":                   {header + `{"kind":"total","aggregates":1}` + "\n", "there are 0", archive.ErrDamaged},
		"a head after the total":         {header + `{"kind":"total"}` + "\n" + head(`"version":1`)[len(header):], "after the total", archive.ErrDamaged},
		"something torn after the total": {header + `{"kind":"total"}` + "\n" + "x", "ends within it", archive.ErrTorn},
		"an aggregate that ends early": {
			head(`"version":2`) + `{"kind":"end","sha256":"` + digest(head(`"version":2`)[len(header):]) + `"}` + "\n", "ends before event 1", archive.ErrDamaged,
		},
		"a page without end": {
			head(`"version":200`) + events(99), "more than 98 events", archive.ErrDamaged,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			report, err := archive.VerifyArchive(strings.NewReader(c.text))
			require.NoError(t, err)
			require.NotEmpty(t, report.Faults)
			require.ErrorIs(t, report.Faults[0], c.kind)
			require.ErrorContains(t, report.Faults[0], c.reason)
			require.ErrorContains(t, report.Faults[0], "line ")

			_, to := pair(t)
			_, err = archive.Import(t.Context(), to.Journal, strings.NewReader(c.text), archive.ImportOptions{})
			require.ErrorIs(t, err, c.kind)
			assert.Empty(t, to.contents(t))
		})
	}
}

func digest(lines string) string { return fmt.Sprintf("%x", sha256.Sum256([]byte(lines))) }

func events(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, `{"kind":"event","number":%d}`+"\n", i+1)
	}
	return b.String()
}

func FuzzAnyTextIsReadWithoutPanic(f *testing.F) {
	const header = `{"kind":"archive","format":"millrace-archive","version":1}` + "\n"
	f.Add([]byte(header + `{"kind":"head","aggregate":{"type":"a","value":"1"},"version":1,"snapshot":{"number":1,"payload":"eA=="}}` + "\n" +
		`{"kind":"event","number":1,"payload":"eA==","metadata":{"a":"b"}}` + "\n" + `{"kind":"end","events":1,"sha256":""}` + "\n" + `{"kind":"total"}` + "\n"))
	f.Add([]byte(header))
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, text []byte) {
		report, err := archive.VerifyArchive(bytes.NewReader(text))
		require.NoError(t, err)
		position, err := archive.ResumePosition(bytes.NewReader(text))
		if err != nil {
			require.ErrorIs(t, err, archive.ErrNotArchive)
			return
		}
		require.LessOrEqual(t, position.Offset, int64(len(text)))
		again, err := archive.ResumePosition(bytes.NewReader(text[:position.Offset]))
		require.NoError(t, err)
		require.Equal(t, position, again, "what is kept is kept again")
		if len(report.Faults) == 0 {
			require.True(t, position.Complete)
			require.EqualValues(t, len(text), position.Offset)
		}
	})
}
