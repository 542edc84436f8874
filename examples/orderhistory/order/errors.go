package order

import (
	"errors"
	"fmt"
	"strings"
)

// Why a command is refused, for errors.Is.
var (
	ErrNotFound   = errors.New("order not found")
	ErrExists     = errors.New("order exists already")
	ErrInvalid    = errors.New("invalid order")
	ErrNotAllowed = errors.New("not allowed")
)

func (o Order) refuse(command string) error {
	if o.Status == "" {
		return ErrNotFound
	}
	status := strings.TrimSpace(fmt.Sprintf("%s %s", o.Status, o.Delivery))
	return fmt.Errorf("%w: cannot %s an order that is %s", ErrNotAllowed, command, status)
}

// Limits of one order, which keep its total far from overflow and its events far from DynamoDB's 400 KB.
const maxLines, maxQuantity, maxPriceCents, maxText = 100, 1_000, 1_000_000_00, 200

func (d Details) validate() error {
	return errors.Join(d.Lines.validate(),
		within("consumerId", len(d.ConsumerID), 1, maxText, "bytes"),
		within("restaurant", len(d.Restaurant), 1, maxText, "bytes"))
}

func (lines Lines) validate() error {
	faults := []error{within("lines", len(lines), 1, maxLines, "lines")}
	for i, line := range lines[:min(len(lines), maxLines)] {
		where := fmt.Sprintf("lines[%d].", i)
		faults = append(faults,
			within(where+"name", len(line.Name), 1, maxText, "bytes"),
			within(where+"quantity", line.Quantity, 1, maxQuantity, "pieces"),
			within(where+"priceCents", line.PriceCents, 0, maxPriceCents, "cents"))
	}
	return errors.Join(faults...)
}

func within[N int | int64](field string, n, least, most N, unit string) error {
	if n < least || n > most {
		return fmt.Errorf("%w: %s has %d %s, not %d to %d", ErrInvalid, field, n, unit, least, most)
	}
	return nil
}
