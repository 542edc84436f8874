package output_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/cmd/millrace/internal/output"
)

type dish struct {
	Name  string `json:"name"`
	Price int    `json:"price"`
}

var dishes = []output.Column[dish]{
	{Name: "DISH", Cell: func(d dish) string { return d.Name }},
	{Name: "PRICE", Cell: func(d dish) string { return fmt.Sprint(d.Price) }},
}

func TestATableIsAligned(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	rows := output.NewRows(&out, false, dishes...)
	for _, d := range []dish{{"Naan", 300}, {"Palak Paneer", 1050}, {"Käsespätzle", 900}} {
		require.NoError(t, rows.Print(d))
	}
	assert.Empty(t, out.String(), "widths are not known yet")
	require.NoError(t, rows.Flush())
	assert.Equal(t, "DISH          PRICE\nNaan          300\nPalak Paneer  1050\nKäsespätzle   900\n", out.String())

	require.NoError(t, rows.Print(dish{"Dal", 700}))
	require.NoError(t, rows.Flush())
	assert.True(t, strings.HasSuffix(out.String(), "\nDal           700\n"), "columns stay where they are: %s", &out)
}

func TestALongTableBeginsAtOnce(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	rows := output.NewRows(&out, false, dishes...)
	for range 150 {
		require.NoError(t, rows.Print(dish{"Naan", 300}))
	}
	assert.NotEmpty(t, out.String())
}

func TestJSONIsALineForEachValue(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	rows := output.NewRows(&out, true, dishes...)
	require.NoError(t, rows.Print(dish{"<Naan>", 300}))
	require.NoError(t, rows.Print(dish{"Dal", 700}))
	assert.Equal(t, []string{`{"name":"<Naan>","price":300}`, `{"name":"Dal","price":700}`}, strings.Fields(out.String()))
}

func TestFieldsWithoutAValueAreLeftOut(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	require.NoError(t, output.Fields(&out, output.Field{Name: "name", Value: "Dal"}, output.Field{Name: "deleted"}))
	assert.Equal(t, "name     Dal\n", out.String())
}

func TestAPayloadIsShownAsWhatItIs(t *testing.T) {
	t.Parallel()
	for stored, want := range map[string]string{
		"{\n  \"n\": 1e2\n}": `{"n":1e2}`,
		"plain":              "plain",
		"\xff\x00":           "base64:/wA=",
		"":                   "",
	} {
		assert.Equal(t, want, output.PayloadOf([]byte(stored)).String())
	}
}

func TestProgressIsShownNowAndThen(t *testing.T) {
	t.Parallel()
	now := time.Unix(0, 0)
	clock := func() time.Time { return now }
	show := func(p *output.Progress, times int, every time.Duration) {
		for range times {
			p.Show(func(elapsed time.Duration) string { return elapsed.String() })
			now = now.Add(every)
		}
		p.Done()
	}
	var out bytes.Buffer
	show(output.NewProgress(&out, false, clock), 11, time.Second)
	assert.Equal(t, "0s\n5s\n10s\n", out.String())
	out.Reset()
	show(output.NewProgress(&out, true, clock), 3, 50*time.Millisecond)
	assert.Equal(t, "\r\x1b[K0s\r\x1b[K100ms\r\x1b[K", out.String())
	show(&output.Progress{}, 3, time.Second)
}

func TestATimeBeyondTheYearsOfRFC3339IsShownAsItIsStored(t *testing.T) {
	t.Parallel()
	for millis, want := range map[int64]string{
		1_700_000_000_000:         "2023-11-14T22:13:20.000Z",
		253_402_300_799_999:       "9999-12-31T23:59:59.999Z",
		253_402_300_800_000:       "253402300800000 ms since 1970",
		1_700_000_000_000_000_000: "1700000000000000000 ms since 1970",
		-62_167_219_200_000:       "0000-01-01T00:00:00.000Z",
		-62_167_219_200_001:       "-62167219200001 ms since 1970",
	} {
		assert.Equal(t, want, output.Time(time.UnixMilli(millis)))
	}
	assert.Empty(t, output.Time(time.Time{}))
}
