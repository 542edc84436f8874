package order_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/millrace-dev/millrace/aggregate/aggregatetest"
	"github.com/millrace-dev/millrace/examples/orderhistory/order"
)

var (
	curry   = []order.Line{{Name: "Chicken Vindaloo", Quantity: 2, PriceCents: 1250}, {Name: "Naan", Quantity: 3, PriceCents: 300}}
	samosas = []order.Line{{Name: "Samosa", Quantity: 4, PriceCents: 450}}
	details = order.Details{
		ConsumerID: "ada", Restaurant: "Ajanta", Lines: curry, CreatedAt: time.Date(2024, 5, 1, 18, 30, 0, 250_000_000, time.UTC),
	}
	created = order.Created{Details: details}
)

func given(t *testing.T, events ...order.Event) *aggregatetest.Scenario[order.Order] {
	t.Helper()
	return aggregatetest.Given(t, order.Definition, events...)
}

func TestAnOrderIsCreatedRevisedAndApproved(t *testing.T) {
	t.Parallel()
	revised := details
	revised.Lines = samosas
	given(t).
		When(order.Create(details)).Then(created).
		When(order.Revise(samosas)).Then(order.Revised{Revision: 1, Lines: samosas}).
		When(order.Approve(1)).Then(order.Approved{}).
		ThenState(order.Order{Details: revised, Revision: 1, Status: order.StatusApproved})
}

func TestTheCreationTimeIsKeptInUTCWithMilliseconds(t *testing.T) {
	t.Parallel()
	local := details
	local.CreatedAt = details.CreatedAt.Add(999 * time.Microsecond).In(time.FixedZone("", 3600))
	given(t).When(order.Create(local)).Then(created)
}

func TestAnApprovalOfAnEarlierRevisionDoesNotCount(t *testing.T) {
	t.Parallel()
	given(t, created, order.Revised{Revision: 1, Lines: samosas}).
		When(order.Approve(0)).ThenNothing().
		When(order.Approve(1)).Then(order.Approved{})
}

func TestAPendingOrderIsRejectedOrCancelledWithTheReason(t *testing.T) {
	t.Parallel()
	given(t, created).When(order.Reject("sold out")).Then(order.Rejected{Reason: "sold out"}).
		ThenState(order.Order{Details: details, Status: order.StatusRejected, Reason: "sold out"})
	given(t, created).When(order.Cancel("too late")).Then(order.Cancelled{Reason: "too late"}).
		ThenState(order.Order{Details: details, Status: order.StatusCancelled, Reason: "too late"})
}

func TestAnOrderRefusesWhatItsStatusDoesNotAllow(t *testing.T) {
	t.Parallel()
	commands := map[string]order.Decision{
		"create": order.Create(details), "revise": order.Revise(samosas), "approve": order.Approve(0), "reject": order.Reject(""), "cancel": order.Cancel(""),
	}
	for status, events := range map[order.Status][]order.Event{
		"":                          nil,
		order.StatusApprovalPending: {created},
		order.StatusApproved:        {created, order.Approved{}},
		order.StatusRejected:        {created, order.Rejected{}},
		order.StatusCancelled:       {created, order.Cancelled{}},
	} {
		for name, command := range commands {
			allowed := order.StatusApprovalPending
			if name == "create" {
				allowed = ""
			}
			if status == allowed {
				continue
			}
			t.Run(name+" "+string(status), func(t *testing.T) {
				t.Parallel()
				given(t, events...).When(command).ThenError(order.Refused{status})
			})
		}
	}
}

func TestAnOrderOfInvalidLinesIsRefused(t *testing.T) {
	t.Parallel()
	line := func(change func(*order.Line)) []order.Line {
		l := curry[0]
		change(&l)
		return []order.Line{l}
	}
	for why, lines := range map[string][]order.Line{
		"none":       nil,
		"too many":   make([]order.Line, 101),
		"no dish":    line(func(l *order.Line) { l.Quantity = 0 }),
		"all dishes": line(func(l *order.Line) { l.Quantity = 1_001 }),
		"negative":   line(func(l *order.Line) { l.PriceCents = -1 }),
		"overflow":   line(func(l *order.Line) { l.PriceCents = 100_000_001 }),
	} {
		t.Run(why, func(t *testing.T) {
			t.Parallel()
			d := details
			d.Lines = lines
			given(t).When(order.Create(d)).ThenError(order.ErrInvalid)
			given(t, created).When(order.Revise(lines)).ThenError(order.ErrInvalid)
		})
	}
	most := line(func(l *order.Line) { l.Quantity, l.PriceCents = 1_000, 100_000_000 })
	given(t, created).When(order.Revise(most)).Then(order.Revised{Revision: 1, Lines: most})
}

func TestARefusalSaysTheStatus(t *testing.T) {
	t.Parallel()
	assert.EqualError(t, order.Refused{order.StatusApproved}, "the order's status is 'APPROVED'")
}
