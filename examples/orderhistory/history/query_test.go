package history_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/examples/orderhistory/delivery"
	"github.com/millrace-dev/millrace/examples/orderhistory/history"
	"github.com/millrace-dev/millrace/examples/orderhistory/order"
	"github.com/millrace-dev/millrace/examples/orderhistory/ticket"
	"github.com/millrace-dev/millrace/journal"
)

func TestPagesShowEveryOrderOfAConsumerOnceNewestFirst(t *testing.T) {
	t.Parallel()
	f := setup(t)
	var all []string
	for range 7 {
		all = append(all, f.place("ada", "Ajanta", "Vindaloo"))
		f.place("bob", "Ajanta", "Vindaloo")
	}
	f.project("history")
	slices.Reverse(all)

	assert.Equal(t, [][]string{all[:3], all[3:6], all[6:]}, f.findAll("ada", history.Filter{PageSize: 3}))
	assert.Equal(t, [][]string{all}, f.findAll("ada", history.Filter{PageSize: 7}), "a full page that is the last has no token")
	assert.Equal(t, [][]string{{}}, f.findAll("nobody", history.Filter{}))
}

func TestThePageSizeMayChangeFromPageToPage(t *testing.T) {
	t.Parallel()
	f := setup(t)
	for range 3 {
		f.place("ada", "Ajanta", "Vindaloo")
	}
	f.project("history")
	first := f.find("ada", history.Filter{PageSize: 1})

	second := f.find("ada", history.Filter{PageSize: 2, PageToken: first.NextToken})
	assert.Equal(t, []string{"ada-002", "ada-001"}, ids(second))
}

func TestAFilterShowsWhatMatches(t *testing.T) {
	t.Parallel()
	f := setup(t)
	first := f.place("ada", "Ajanta", "Chicken Vindaloo")
	second := f.place("ada", "Chez Vin", "Steak Frites", "Mousse")
	third := f.place("ada", "Ajanta", "Naan")
	execute(f, f.orders, second, order.Approve(0))
	execute(f, f.orders, third, order.Cancel(""))
	execute(f, f.tickets, second, ticket.Request(0, nil), ticket.Accept)
	execute(f, f.tickets, third, ticket.Request(0, nil))
	execute(f, f.deliveries, second, delivery.Schedule, delivery.PickUp)
	f.project("history")
	minute := func(n int) time.Time { return noon.Add(time.Duration(n) * time.Minute) }

	for name, c := range map[string]struct {
		filter history.Filter
		want   []string
	}{
		"no filter":                        {history.Filter{}, []string{third, second, first}},
		"status":                           {history.Filter{Status: order.StatusApproved}, []string{second}},
		"status of the ticket":             {history.Filter{TicketStatus: ticket.StatusAwaitingAcceptance}, []string{third}},
		"status of the delivery":           {history.Filter{DeliveryStatus: delivery.StatusPickedUp}, []string{second}},
		"all three statuses":               {history.Filter{Status: order.StatusApproved, TicketStatus: ticket.StatusAccepted, DeliveryStatus: delivery.StatusPickedUp}, []string{second}},
		"statuses of two orders":           {history.Filter{Status: order.StatusApproved, TicketStatus: ticket.StatusAwaitingAcceptance}, []string{}},
		"restaurant":                       {history.Filter{Keyword: "ajanta"}, []string{third, first}},
		"line or restaurant":               {history.Filter{Keyword: "VIN"}, []string{second, first}},
		"every word of the keyword":        {history.Filter{Keyword: " mousse  chez "}, []string{second}},
		"words that no order has all of":   {history.Filter{Keyword: "mousse ajanta"}, []string{}},
		"words on two lines":               {history.Filter{Keyword: "frites\nmousse"}, []string{second}},
		"since, included":                  {history.Filter{Since: minute(2)}, []string{third, second}},
		"until, not included":              {history.Filter{Until: minute(2)}, []string{first}},
		"between":                          {history.Filter{Since: minute(2), Until: minute(3)}, []string{second}},
		"parts of a millisecond":           {history.Filter{Since: minute(2).Add(1), Until: minute(3).Add(1)}, []string{third}},
		"all of it":                        {history.Filter{Since: minute(1), Status: order.StatusCancelled, Keyword: "naan"}, []string{third}},
		"status and keyword of two orders": {history.Filter{Status: order.StatusCancelled, Keyword: "mousse"}, []string{}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			page, err := f.dao.FindOrderHistory(t.Context(), "ada", c.filter)
			require.NoError(t, err)
			assert.Equal(t, c.want, ids(page))
		})
	}
}

func TestARevisionChangesWhatAKeywordFinds(t *testing.T) {
	t.Parallel()
	f := setup(t)
	id := f.place("ada", "Ajanta", "Vindaloo")
	execute(f, f.orders, id, order.Revise(menu("Korma")))
	f.project("history")

	assert.Empty(t, ids(f.find("ada", history.Filter{Keyword: "vindaloo"})))
	assert.Equal(t, []string{id}, ids(f.find("ada", history.Filter{Keyword: "ajanta korma"})))
}

func TestAFilterThatMatchesLittleStillFillsItsPages(t *testing.T) {
	t.Parallel()
	f := setup(t)
	var rare []string
	for n := range 220 { // more than one read
		name := "Vindaloo"
		if n%45 == 0 {
			name = "Truffles"
		}
		id := f.place("ada", "Ajanta", name)
		if n%45 == 0 {
			rare = append(rare, id)
		}
	}
	f.project("history")
	slices.Reverse(rare)
	require.Len(t, rare, 5)

	assert.Equal(t, [][]string{rare[:2], rare[2:4], rare[4:]}, f.findAll("ada", history.Filter{Keyword: "truffles", PageSize: 2}))
	assert.Equal(t, [][]string{rare}, f.findAll("ada", history.Filter{Keyword: "truffles", PageSize: 5}))
}

func TestAFilterThatMatchesNothingReadsABoundedNumberOfOrdersForEachPage(t *testing.T) {
	t.Parallel()
	f := setup(t)
	for range 25 {
		f.place("ada", "Ajanta", "Vindaloo")
	}
	oldest := f.place("bob", "Chez Vin", "Mousse")
	for range 24 {
		f.place("bob", "Ajanta", "Vindaloo")
	}
	f.project("history")
	f.dao = history.NewOrderHistoryDao(f.client, history.Config{MaxRead: 10})

	assert.Equal(t, [][]string{{}, {}, {}}, f.findAll("ada", history.Filter{Keyword: "mousse"}), "25 orders, 10 at a time")
	assert.Equal(t, [][]string{{}, {}, {oldest}}, f.findAll("bob", history.Filter{Keyword: "mousse"}), "and what there is comes")
	assert.Len(t, f.find("ada", history.Filter{PageSize: 20}).Orders, 10, "the bound is for every query")
}

func TestAKeywordIsAsLongInAnyScript(t *testing.T) {
	t.Parallel()
	f := setup(t)
	dish := strings.Repeat("麵", 100)
	id := f.place("ada", "Ajanta", dish)
	f.project("history")
	assert.Equal(t, []string{id}, ids(f.find("ada", history.Filter{Keyword: dish})))
}

func TestAnInvalidFilterIsRefusedWithTheReason(t *testing.T) {
	t.Parallel()
	// The client panics, because an invalid filter is refused without a request.
	dao := history.NewOrderHistoryDao(struct{ journal.Client }{}, history.Config{})
	for reason, filter := range map[string]history.Filter{
		`pageSize is -1, not 1 to 100`:  {PageSize: -1},
		`pageSize is 101, not 1 to 100`: {PageSize: 101},
		`status is "EATEN", not one of`: {Status: "EATEN"},
		`ticketStatus is "EATEN"`:       {TicketStatus: "EATEN"},
		`deliveryStatus is "LOST"`:      {DeliveryStatus: "LOST"},
		`keyword has 101 characters`:    {Keyword: strings.Repeat("ä", 101)},
		`until is not after since`:      {Since: noon, Until: noon},
		`is before 1970`:                {Since: time.Unix(-1, 0)},
	} {
		t.Run(reason, func(t *testing.T) {
			t.Parallel()
			_, err := dao.FindOrderHistory(t.Context(), "ada", filter)
			require.ErrorIs(t, err, history.ErrInvalidFilter)
			assert.ErrorContains(t, err, reason)
		})
	}
	_, err := dao.FindOrderHistory(t.Context(), "", history.Filter{})
	assert.ErrorIs(t, err, history.ErrInvalidFilter)
}

// throttled is a table that refuses all requests.
type throttled struct{ journal.Client }

func (throttled) Query(context.Context, *dynamodb.QueryInput, ...func(*dynamodb.Options)) (*dynamodb.QueryOutput, error) {
	return nil, &types.ProvisionedThroughputExceededException{Message: aws.String("slow down")}
}

func (throttled) GetItem(context.Context, *dynamodb.GetItemInput, ...func(*dynamodb.Options)) (*dynamodb.GetItemOutput, error) {
	return nil, &types.ProvisionedThroughputExceededException{Message: aws.String("slow down")}
}

func TestAThrottledQueryIsToldAsSuch(t *testing.T) {
	t.Parallel()
	dao := history.NewOrderHistoryDao(throttled{}, history.Config{})
	_, err := dao.FindOrderHistory(t.Context(), "ada", history.Filter{})
	require.ErrorIs(t, err, journal.ErrThrottled)
	_, err = dao.FindOrder(t.Context(), "1")
	assert.ErrorIs(t, err, journal.ErrThrottled)
}
