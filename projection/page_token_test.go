package projection_test

import (
	"encoding/base64"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/internal/testdb"
	"github.com/millrace-dev/millrace/projection"
)

func TestAPageTokenThatWasNotReturnedIsRefused(t *testing.T) {
	t.Parallel()
	l := newList(t, testdb.Client(t))
	for day := range 3 {
		l.put(fmt.Sprint(day), "anna", day, item{"state": projection.Text("1")})
	}
	open := projection.Where("state", "=", projection.Text("1"))
	given := ofAnna(func(q *projection.Query) { q.Limit, q.From, q.Filters = 1, number(0), []projection.Filter{open} })
	page, err := l.Page(t.Context(), given)
	require.NoError(t, err)
	token := page.NextToken
	raw, err := base64.RawURLEncoding.DecodeString(token)
	require.NoError(t, err)

	refused := func(why, token string, change func(*projection.Query)) {
		t.Helper()
		q := given
		change(&q)
		q.Token = token
		_, err := l.Page(t.Context(), q)
		assert.ErrorIs(t, err, projection.ErrPageToken, why)
	}
	same := func(*projection.Query) {}
	for i := range raw {
		changed := append([]byte{}, raw...)
		changed[i] ^= 1
		refused("a changed byte", base64.RawURLEncoding.EncodeToString(changed), same)
	}
	for why, other := range map[string]string{
		"a part": token[:len(token)-4], "a character more": token + "A", "padding": token + "=", "no token": "tomorrow", "a long one": strings.Repeat("A", 100_000),
	} {
		refused(why, other, same)
	}
	for why, change := range map[string]func(*projection.Query){
		"another partition":  func(q *projection.Query) { q.Partition = "bert" },
		"the table":          func(q *projection.Query) { q.Index, q.From = "", nil },
		"another beginning":  func(q *projection.Query) { q.From = number(1) },
		"no beginning":       func(q *projection.Query) { q.From = nil },
		"an end":             func(q *projection.Query) { q.To = number(9) },
		"the other order":    func(q *projection.Query) { q.Descending = true },
		"no filter":          filters(),
		"another value":      filters(projection.Where("state", "=", projection.Text("closed"))),
		"another type":       filters(projection.Where("state", "=", number(1))),
		"another operator":   filters(projection.Where("state", "<=", projection.Text("1"))),
		"another attribute":  filters(projection.Where("status", "=", projection.Text("1"))),
		"one more condition": filters(open, open),
	} {
		refused(why, token, change)
	}

	given.Token, given.Limit = token, 2
	page, err = l.Page(t.Context(), given)
	require.NoError(t, err)
	assert.Equal(t, []string{"1", "2"}, page.Rows, "the same query with another limit")
}

func TestAMadeUpPageTokenNeitherFailsOddlyNorShowsAnotherPartition(t *testing.T) {
	t.Parallel()
	l := newList(t, testdb.Client(t))
	l.put("1", "anna", 1, nil)
	l.put("2", "bert", 2, nil)
	between := ofAnna(func(q *projection.Query) { q.From, q.To = number(1), number(5) })
	for why, content := range map[string]string{
		"nothing":          "",
		"no JSON":          "{",
		"an object":        `{"id": "1"}`,
		"one value":        `["1"]`,
		"three values":     `["1", "2", "3"]`,
		"no string":        `[1, "1"]`,
		"no number":        `["day", "1"]`,
		"no key":           `["1", ""]`,
		"outside of range": `["9", "1"]`,
	} {
		q := between
		q.Token = l.MakePageToken(between, content)
		_, err := l.Page(t.Context(), q)
		assert.ErrorIs(t, err, projection.ErrPageToken, why)
	}
	q := between
	q.Token = l.MakePageToken(between, `["1", "0"]`)
	page, err := l.Page(t.Context(), q)
	require.NoError(t, err, "a place within")
	assert.NotContains(t, page.Rows, "2")
}

func TestAPageTokenIsValidForTheTablesOfOneName(t *testing.T) {
	t.Parallel()
	client := testdb.Client(t)
	generation := func(table, name string) projection.Reader[string] {
		next := orders
		next.Name = table
		require.NoError(t, projection.CreateTable(t.Context(), client, next))
		reader := newReader(client, next)
		reader.Name = name
		return reader
	}
	l := newList(t, client)
	l.put("1", "anna", 1, nil)
	l.put("2", "anna", 2, nil)
	one := ofAnna(func(q *projection.Query) { q.Limit = 1 })
	page, err := generation("orders", "list").Page(t.Context(), one)
	require.NoError(t, err)
	one.Token = page.NextToken

	_, err = generation("orders_2", "list").Page(t.Context(), one)
	require.NoError(t, err)
	_, err = generation("orders_2", "").Page(t.Context(), one)
	assert.ErrorIs(t, err, projection.ErrPageToken)
}

// Made-up tokens are refused, and never panic.
func FuzzPageToken(f *testing.F) {
	f.Add("", "")
	f.Add("AAAA", `["1", "2"]`)
	f.Fuzz(func(t *testing.T, token, content string) {
		l := newList(t, testdb.Client(t))
		q := ofAnna(nil)
		for _, q.Token = range []string{token, l.MakePageToken(ofAnna(nil), content)} {
			if _, err := l.Page(t.Context(), q); err != nil {
				assert.ErrorIs(t, err, projection.ErrPageToken)
			}
		}
	})
}
