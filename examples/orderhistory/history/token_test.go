package history_test

import (
	"encoding/base64"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/examples/orderhistory/delivery"
	"github.com/millrace-dev/millrace/examples/orderhistory/history"
	"github.com/millrace-dev/millrace/examples/orderhistory/order"
	"github.com/millrace-dev/millrace/examples/orderhistory/ticket"
)

func TestAPageTokenThatWasNotReturnedIsRefused(t *testing.T) {
	t.Parallel()
	f := setup(t)
	for range 3 {
		f.place("ada", "Ajanta", "Vindaloo")
	}
	f.project("history")
	given := history.Filter{PageSize: 1, Status: order.StatusApprovalPending, Keyword: "Vindaloo Ajanta", Since: noon}
	token := f.find("ada", given).NextToken
	require.NotEmpty(t, token)
	raw, err := base64.RawURLEncoding.DecodeString(token)
	require.NoError(t, err)

	refused := func(why, consumer, token string, filter history.Filter) {
		t.Helper()
		filter.PageToken = token
		_, err := f.dao.FindOrderHistory(t.Context(), consumer, filter)
		assert.ErrorIs(t, err, history.ErrInvalidPageToken, why)
	}
	for i := range raw {
		changed := append([]byte{}, raw...)
		changed[i] ^= 1
		refused("a changed byte", "ada", base64.RawURLEncoding.EncodeToString(changed), given)
	}
	refused("a part", "ada", token[:len(token)-4], given)
	refused("a character more", "ada", token+"A", given)
	refused("padding", "ada", token+"=", given)
	refused("no token", "ada", "tomorrow", given)
	refused("a long one", "ada", strings.Repeat("A", 10_000), given)
	refused("another consumer", "bob", token, given)
	for why, other := range map[string]history.Filter{
		"another status":      {Status: order.StatusApproved, Keyword: given.Keyword, Since: noon},
		"a ticket's status":   {Status: given.Status, TicketStatus: ticket.StatusAccepted, Keyword: given.Keyword, Since: noon},
		"a delivery's status": {Status: given.Status, DeliveryStatus: delivery.StatusPickedUp, Keyword: given.Keyword, Since: noon},
		"another keyword":     {Status: given.Status, Keyword: "Ajanta", Since: noon},
		"another start":       {Status: given.Status, Keyword: given.Keyword},
		"an end":              {Status: given.Status, Keyword: given.Keyword, Since: noon, Until: noon.AddDate(1, 0, 0)},
	} {
		refused(why, "ada", token, other)
	}

	given.PageToken, given.Keyword = token, "vindaloo  AJANTA"
	assert.Equal(t, []string{"ada-002"}, ids(f.find("ada", given)), "the same words, written otherwise")
}

func TestAPageTokenOutlivesTheProcessThatReturnedIt(t *testing.T) {
	t.Parallel()
	f := setup(t)
	f.place("ada", "Ajanta", "Vindaloo")
	f.place("ada", "Ajanta", "Vindaloo")
	f.project("history")
	token := f.find("ada", history.Filter{PageSize: 1}).NextToken

	restarted := history.NewOrderHistoryDao(f.client, history.Config{})
	page, err := restarted.FindOrderHistory(t.Context(), "ada", history.Filter{PageToken: token})
	require.NoError(t, err)
	assert.Equal(t, []string{"ada-001"}, ids(page))
}

func TestAMadeUpPageTokenShowsNoOrderOfAnotherConsumer(t *testing.T) {
	t.Parallel()
	f := setup(t)
	f.place("bob", "Ajanta", "Vindaloo")
	f.place("ada", "Ajanta", "Vindaloo")
	f.place("bob", "Ajanta", "Vindaloo")
	f.project("history")
	after := noon.Add(3 * time.Minute).UnixMilli()
	token := history.MakePageToken("ada", history.Filter{}, fmt.Sprintf(`{"o": "bob-003", "t": %d}`, after))
	page, err := f.dao.FindOrderHistory(t.Context(), "ada", history.Filter{PageToken: token})
	require.NoError(t, err)
	assert.Equal(t, []string{"ada-002"}, ids(page))
}

func TestAMadeUpPageTokenThatNoQueryCanBeginAfterIsRefused(t *testing.T) {
	t.Parallel()
	f := setup(t)
	hour := history.Filter{Since: noon, Until: noon.Add(time.Hour)}
	within := noon.Add(time.Minute).UnixMilli()
	for why, content := range map[string]string{
		"nothing":        "",
		"no JSON":        "{",
		"no order":       fmt.Sprintf(`{"t": %d}`, within),
		"too long an id": fmt.Sprintf(`{"o": %q, "t": %d}`, strings.Repeat("x", 2049), within),
		"no time":        `{"o": "ada-001"}`,
		"no number":      `{"o": "ada-001", "t": "noon"}`,
		"before since":   fmt.Sprintf(`{"o": "ada-001", "t": %d}`, noon.UnixMilli()-1),
		"at until":       fmt.Sprintf(`{"o": "ada-001", "t": %d}`, noon.Add(time.Hour).UnixMilli()),
	} {
		hour.PageToken = history.MakePageToken("ada", hour, content)
		_, err := f.dao.FindOrderHistory(t.Context(), "ada", hour)
		assert.ErrorIs(t, err, history.ErrInvalidPageToken, why)
	}
	hour.PageToken = history.MakePageToken("ada", hour, fmt.Sprintf(`{"o": "ada-001", "t": %d}`, within))
	assert.Empty(t, ids(f.find("ada", hour)), "a place within")
}
