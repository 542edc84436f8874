package order_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/millrace-dev/millrace/aggregate/aggregatetest"
	"github.com/millrace-dev/millrace/examples/orderhistory/order"
)

var (
	curry   = order.Lines{{Name: "Chicken Vindaloo", Quantity: 2, PriceCents: 1250}, {Name: "Naan", Quantity: 3, PriceCents: 300}}
	samosas = order.Lines{{Name: "Samosa", Quantity: 4, PriceCents: 450}}
	details = order.Details{
		ConsumerID: "ada", Restaurant: "Ajanta", Lines: curry, CreatedAt: time.Date(2024, 5, 1, 18, 30, 0, 250_000_000, time.UTC),
	}
	created = order.Created{Details: details}
)

func given(t *testing.T, events ...order.Event) *aggregatetest.Scenario[order.Order] {
	t.Helper()
	return aggregatetest.Given(t, order.Definition, events...)
}

func TestAnOrderIsCreatedApprovedPickedUpAndDelivered(t *testing.T) {
	t.Parallel()
	given(t).
		When(order.Create(details)).Then(created).
		When(order.Approve()).Then(order.Approved{}).
		When(order.PickUp()).Then(order.PickedUp{}).
		When(order.Deliver()).Then(order.Delivered{}).
		ThenState(order.Order{Details: details, Status: order.StatusApproved, Delivery: order.DeliveryDelivered})
}

func TestACreatedOrderWaitsForApproval(t *testing.T) {
	t.Parallel()
	given(t, created).
		ThenState(order.Order{Details: details, Status: order.StatusApprovalPending}).
		When(order.PickUp()).ThenError(order.ErrNotAllowed)
}

func TestTheCreationTimeIsKeptInUTCWithMilliseconds(t *testing.T) {
	t.Parallel()
	local := details
	local.CreatedAt = details.CreatedAt.Add(999 * time.Microsecond).In(time.FixedZone("", 3600))
	given(t).When(order.Create(local)).Then(created)
}

func TestAnOrderIsCreatedOnce(t *testing.T) {
	t.Parallel()
	given(t, created).When(order.Create(details)).ThenError(order.ErrExists)
}

func TestALaterRevisionReplacesTheLines(t *testing.T) {
	t.Parallel()
	revised := details
	revised.Lines = samosas
	given(t, created, order.Approved{}).
		When(order.Revise(samosas)).Then(order.Revised{Lines: samosas}).
		ThenState(order.Order{Details: revised, Status: order.StatusApproved})
}

func TestAnOrderIsCancelledBeforeItIsPickedUpAndNotAfter(t *testing.T) {
	t.Parallel()
	given(t, created).When(order.Cancel("too late")).Then(order.Cancelled{Reason: "too late"}).
		ThenState(order.Order{Details: details, Status: order.StatusCancelled, CancelReason: "too late"})
	given(t, created, order.Approved{}).When(order.Cancel("")).Then(order.Cancelled{})
	given(t, created, order.Approved{}, order.PickedUp{}).When(order.Cancel("")).ThenError(order.ErrNotAllowed)
}

func TestACancelledOrderStaysAsItIs(t *testing.T) {
	t.Parallel()
	for name, command := range map[string]order.Decision{
		"approve": order.Approve(), "revise": order.Revise(samosas), "pick up": order.PickUp(), "deliver": order.Deliver(),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			given(t, created, order.Cancelled{}).When(command).ThenErrorFunc(func(t testing.TB, err error) {
				assert.ErrorIs(t, err, order.ErrNotAllowed)
				assert.EqualError(t, err, "not allowed: cannot "+name+" an order that is CANCELLED")
			})
		})
	}
}

func TestAnOrderThatIsPickedUpIsNotRevised(t *testing.T) {
	t.Parallel()
	given(t, created, order.Approved{}, order.PickedUp{}).When(order.Revise(samosas)).ThenErrorFunc(func(t testing.TB, err error) {
		assert.EqualError(t, err, "not allowed: cannot revise an order that is APPROVED PICKED_UP")
	})
}

func TestACommandThatIsSentAgainChangesNothing(t *testing.T) {
	t.Parallel()
	given(t, created, order.Approved{}).When(order.Approve()).ThenNothing()
	given(t, created).When(order.Revise(curry)).ThenNothing()
	given(t, created, order.Cancelled{}).When(order.Cancel("again")).ThenNothing()
	given(t, created, order.Approved{}, order.PickedUp{}).When(order.PickUp()).ThenNothing()
	given(t, created, order.Approved{}, order.PickedUp{}, order.Delivered{}).When(order.Deliver()).ThenNothing()
}

func TestAnOrderThatWasNeverCreatedIsNotFound(t *testing.T) {
	t.Parallel()
	for name, command := range map[string]order.Decision{
		"approve": order.Approve(), "revise": order.Revise(curry), "cancel": order.Cancel(""),
		"pick up": order.PickUp(), "deliver": order.Deliver(),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			given(t).When(command).ThenError(order.ErrNotFound)
		})
	}
}

func TestAnInvalidOrderIsRefusedWithTheReason(t *testing.T) {
	t.Parallel()
	for reason, spoil := range map[string]func(*order.Details){
		"consumerId has 0 bytes":            func(d *order.Details) { d.ConsumerID = "" },
		"restaurant has 0 bytes":            func(d *order.Details) { d.Restaurant = "" },
		"restaurant has 201 bytes":          func(d *order.Details) { d.Restaurant = strings.Repeat("x", 201) },
		"lines has 0 lines":                 func(d *order.Details) { d.Lines = nil },
		"lines has 101 lines":               func(d *order.Details) { d.Lines = make(order.Lines, 101) },
		"lines[0].name has 0 bytes":         func(d *order.Details) { d.Lines = order.Lines{{Quantity: 1}} },
		"lines[0].quantity has 0 pieces":    func(d *order.Details) { d.Lines = order.Lines{{Name: "x"}} },
		"lines[0].quantity has 1001 pieces": func(d *order.Details) { d.Lines = order.Lines{{Name: "x", Quantity: 1001}} },
		"lines[0].priceCents has -1 cents":  func(d *order.Details) { d.Lines = order.Lines{{Name: "x", Quantity: 1, PriceCents: -1}} },
	} {
		t.Run(reason, func(t *testing.T) {
			t.Parallel()
			spoiled := details
			spoil(&spoiled)
			given(t).When(order.Create(spoiled)).ThenErrorFunc(func(t testing.TB, err error) {
				assert.ErrorIs(t, err, order.ErrInvalid)
				assert.ErrorContains(t, err, reason)
			})
		})
	}
}

func TestARevisionIsValidatedLikeANewOrder(t *testing.T) {
	t.Parallel()
	given(t, created).When(order.Revise(nil)).ThenError(order.ErrInvalid)
}

func TestTheReasonOfACancellationIsShort(t *testing.T) {
	t.Parallel()
	given(t, created).When(order.Cancel(strings.Repeat("x", 201))).ThenError(order.ErrInvalid)
}

func TestTheTotalIsTheSumOfTheLines(t *testing.T) {
	t.Parallel()
	assert.EqualValues(t, 2*1250+3*300, curry.TotalCents())
	assert.Zero(t, order.Lines(nil).TotalCents())
}
