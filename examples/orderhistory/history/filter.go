package history

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/millrace-dev/millrace/examples/orderhistory/delivery"
	"github.com/millrace-dev/millrace/examples/orderhistory/order"
	"github.com/millrace-dev/millrace/examples/orderhistory/ticket"
)

// DefaultPageSize and MaxPageSize bound a page, in orders.
const (
	DefaultPageSize = 20
	MaxPageSize     = 100
)

// Filter says which orders of a consumer to show. The zero value shows all.
type Filter struct {
	Since time.Time // not older than this; zero for no limit
	Until time.Time // older than this; zero for no limit
	// Each status shows only orders that have it.
	Status         order.Status
	TicketStatus   ticket.Status
	DeliveryStatus delivery.Status
	// Keyword shows only orders that have each of its words in the name of the restaurant or of a
	// line, regardless of case.
	Keyword string
	// PageSize is how many orders to show. Default: DefaultPageSize.
	PageSize int
	// PageToken is Page.NextToken of the page before, of the same consumer and the same filter.
	PageToken string
}

// ErrInvalidFilter says that a filter cannot work. See [FilterError].
var ErrInvalidFilter = errors.New("invalid filter")

// FilterError is an [ErrInvalidFilter].
type FilterError struct{ Field, Reason string }

func (e *FilterError) Error() string        { return fmt.Sprintf("invalid filter: %s %s", e.Field, e.Reason) }
func (e *FilterError) Is(target error) bool { return target == ErrInvalidFilter }

// maxKeyword is in characters, and bounds the words.
const maxKeyword = 100

var (
	statuses         = []order.Status{order.StatusApprovalPending, order.StatusApproved, order.StatusRejected, order.StatusCancelled}
	ticketStatuses   = []ticket.Status{ticket.StatusAwaitingAcceptance, ticket.StatusAccepted, ticket.StatusPreparing, ticket.StatusReady, ticket.StatusDeclined, ticket.StatusCancelled}
	deliveryStatuses = []delivery.Status{delivery.StatusScheduled, delivery.StatusPickedUp, delivery.StatusDelivered}
)

// checked is a filter with defaults filled in.
func (f Filter) checked() (Filter, error) {
	if f.PageSize == 0 {
		f.PageSize = DefaultPageSize
	}
	switch {
	case f.PageSize < 1 || f.PageSize > MaxPageSize:
		return f, &FilterError{"pageSize", fmt.Sprintf("is %d, not 1 to %d", f.PageSize, MaxPageSize)}
	case f.Status != "" && !slices.Contains(statuses, f.Status):
		return f, &FilterError{"status", fmt.Sprintf("is %q, not one of %q", f.Status, statuses)}
	case f.TicketStatus != "" && !slices.Contains(ticketStatuses, f.TicketStatus):
		return f, &FilterError{"ticketStatus", fmt.Sprintf("is %q, not one of %q", f.TicketStatus, ticketStatuses)}
	case f.DeliveryStatus != "" && !slices.Contains(deliveryStatuses, f.DeliveryStatus):
		return f, &FilterError{"deliveryStatus", fmt.Sprintf("is %q, not one of %q", f.DeliveryStatus, deliveryStatuses)}
	case utf8.RuneCountInString(f.Keyword) > maxKeyword:
		return f, &FilterError{"keyword", fmt.Sprintf("has %d characters, at most %d", utf8.RuneCountInString(f.Keyword), maxKeyword)}
	case f.Since.UnixMilli() < 0 && !f.Since.IsZero(), f.Until.UnixMilli() < 0 && !f.Until.IsZero():
		return f, &FilterError{"since or until", "is before 1970"}
	case f.since() >= f.until():
		return f, &FilterError{"until", "is not after since"}
	}
	return f, nil
}

// since and until are the creation times to show, in milliseconds; until is not among them.
func (f Filter) since() int64 {
	if f.Since.IsZero() {
		return 0
	}
	return ceilMilli(f.Since)
}

func (f Filter) until() int64 {
	if f.Until.IsZero() {
		return 1 << 53
	}
	return ceilMilli(f.Until)
}

// ceilMilli is the first whole millisecond that is not before t, as creation times are whole.
func ceilMilli(t time.Time) int64 {
	return t.Add(time.Millisecond - 1).UnixMilli()
}

func (f Filter) words() []string { return strings.Fields(strings.ToLower(f.Keyword)) }
