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

// DefaultPageSize and MaxPageSize are numbers of orders on a page.
const (
	DefaultPageSize = 20
	MaxPageSize     = 100
)

// Filter selects the orders of a consumer. The zero value selects all of them.
type Filter struct {
	// Since selects orders that were created at this time or later. Zero means no limit.
	Since time.Time
	// Until selects orders that were created before this time. Zero means no limit.
	Until time.Time
	// Each status selects only orders with that status.
	Status         order.Status
	TicketStatus   ticket.Status
	DeliveryStatus delivery.Status
	// Keyword selects orders that have each of its words in the name of the restaurant or of a
	// line, ignoring case.
	Keyword string
	// PageSize is the number of orders on a page. Default: DefaultPageSize.
	PageSize int
	// PageToken is the NextToken of the previous page, for the same consumer and the same filter.
	PageToken string
}

// ErrInvalidFilter reports a filter that cannot work. See [FilterError].
var ErrInvalidFilter = errors.New("invalid filter")

// FilterError is an [ErrInvalidFilter] with a field and a reason.
type FilterError struct{ Field, Reason string }

func (e *FilterError) Error() string        { return fmt.Sprintf("invalid filter: %s %s", e.Field, e.Reason) }
func (e *FilterError) Is(target error) bool { return target == ErrInvalidFilter }

// maxKeyword is the maximum number of characters of a keyword. It limits the number of words.
const maxKeyword = 100

var (
	statuses         = []order.Status{order.StatusApprovalPending, order.StatusApproved, order.StatusRejected, order.StatusCancelled}
	ticketStatuses   = []ticket.Status{ticket.StatusAwaitingAcceptance, ticket.StatusAccepted, ticket.StatusPreparing, ticket.StatusReady, ticket.StatusDeclined, ticket.StatusCancelled}
	deliveryStatuses = []delivery.Status{delivery.StatusScheduled, delivery.StatusPickedUp, delivery.StatusDelivered}
)

// checked returns a valid filter with its defaults.
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

// since and until return the limits of the creation times, in milliseconds; until itself is
// excluded.
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

// ceilMilli returns the first whole millisecond that is not before t, since creation times are
// whole milliseconds.
func ceilMilli(t time.Time) int64 {
	return t.Add(time.Millisecond - 1).UnixMilli()
}

func (f Filter) words() []string { return strings.Fields(strings.ToLower(f.Keyword)) }
