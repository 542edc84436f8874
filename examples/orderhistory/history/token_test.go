package history_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/examples/orderhistory/history"
	"github.com/millrace-dev/millrace/examples/orderhistory/order"
	"github.com/millrace-dev/millrace/examples/orderhistory/ticket"
	"github.com/millrace-dev/millrace/projection"
)

func TestAPageTokenIsValidForOneConsumerAndFilter(t *testing.T) {
	t.Parallel()
	f := setup(t)
	for range 3 {
		f.place("ada", "Ajanta", "Vindaloo")
	}
	f.project("history")
	given := history.Filter{PageSize: 1, Status: order.StatusApprovalPending, Keyword: "Vindaloo Ajanta", Since: noon}
	given.PageToken = f.find("ada", given).NextToken
	require.NotEmpty(t, given.PageToken)

	_, err := f.dao.FindOrderHistory(t.Context(), "bob", given)
	require.ErrorIs(t, err, projection.ErrPageToken)
	for why, change := range map[string]func(*history.Filter){
		"another status":      func(f *history.Filter) { f.Status = order.StatusApproved },
		"a ticket's status":   func(f *history.Filter) { f.TicketStatus = ticket.StatusAccepted },
		"another keyword":     func(f *history.Filter) { f.Keyword = "Ajanta" },
		"another start":       func(f *history.Filter) { f.Since = noon.AddDate(-1, 0, 0) },
		"an end":              func(f *history.Filter) { f.Until = noon.AddDate(1, 0, 0) },
		"a token of a client": func(f *history.Filter) { f.PageToken = "tomorrow" },
	} {
		other := given
		change(&other)
		_, err := f.dao.FindOrderHistory(t.Context(), "ada", other)
		assert.ErrorIs(t, err, projection.ErrPageToken, why)
	}

	given.Keyword = "vindaloo  AJANTA"
	f.dao = history.NewOrderHistoryDao(f.client, history.Config{}) // of another process
	assert.Equal(t, []string{"ada-002"}, ids(f.find("ada", given)), "the same words, written otherwise")
}
