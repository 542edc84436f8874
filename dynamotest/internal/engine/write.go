package engine

import (
	"errors"
	"slices"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/millrace-dev/millrace/dynamotest/internal/apierror"
	"github.com/millrace-dev/millrace/dynamotest/internal/expression"
	"github.com/millrace-dev/millrace/dynamotest/internal/value"
)

// write is a change of one item. It is checked as far as possible without the lock of its table.
type write struct {
	kind      writeKind
	t         *table
	key       value.Item
	at        position
	condition *expression.Condition
	item      value.Item         // of a put
	update    *expression.Update // nil for an update that only creates a missing item
	returnOld bool               // if the condition fails
	unfit     error              // the error if the key does not fit the table
}

// unfit is the error of a value that does not fit the table or an index. It cancels a transaction,
// while other mistakes make the request invalid.
type unfit struct{ error }

// mistaken is the error of a request that is invalid even in a transaction, although it was found
// late.
type mistaken struct{ error }

func isMistaken(err error) bool {
	_, is := err.(mistaken) //nolint:errorlint // never wrapped
	return is
}

// plain returns an error without the marks that only transactions need.
func plain(err error) error {
	if err == nil {
		return nil
	}
	var misfit unfit
	if errors.As(err, &misfit) {
		return misfit.error
	}
	var mistake mistaken
	if errors.As(err, &mistake) {
		return mistake.error
	}
	return err
}

type writeKind int

const (
	putItem writeKind = iota
	updateItem
	deleteItem
	checkItem // leaves the item unchanged
)

func (w *write) onFailure(v types.ReturnValuesOnConditionCheckFailure) {
	w.returnOld = v == types.ReturnValuesOnConditionCheckFailureAllOld
}

// isOn reports whether another write has the same item.
func (w *write) isOn(other write) bool {
	return w.t == other.t && w.at == other.at && other.unfit == nil
}

// putting makes the write of a whole item, without its table.
func putting(item value.Item, condition *string, a *expression.Attributes) (w write, err error) {
	w.kind = putItem
	if w.condition, err = parseCondition("ConditionExpression", condition, a); err != nil {
		return write{}, err
	}
	if err := a.CheckUsed(); err != nil {
		return write{}, err
	}
	if w.item, err = value.NormalizeItem(item); err != nil {
		return write{}, err
	}
	if value.ItemSize(w.item) > value.MaxItemSize {
		return write{}, apierror.Validation(itemTooLarge)
	}
	return w, nil
}

const itemTooLarge = "Item size has exceeded the maximum allowed size"

// onKey makes a write of the item with a key, without its table.
func onKey(kind writeKind, key value.Item, condition, update *string, a *expression.Attributes) (w write, err error) {
	w.kind = kind
	if update != nil {
		if w.update, err = expression.ParseUpdate(*update, a); err != nil {
			return write{}, err
		}
	}
	if w.condition, err = parseCondition("ConditionExpression", condition, a); err != nil {
		return write{}, err
	}
	if err := a.CheckUsed(); err != nil {
		return write{}, err
	}
	w.key, err = value.NormalizeItem(key)
	return w, err
}

// in sets the table of the write and checks its key.
func (w *write) in(t *table) error {
	w.t = t
	err := w.check()
	if err == nil {
		return nil
	}
	var misfit unfit
	if errors.As(err, &misfit) {
		w.unfit = misfit.error
		return nil
	}
	return err
}

func (w *write) check() error {
	t := w.t
	if w.kind != putItem {
		if err := t.checkKey(w.key); err != nil {
			return err
		}
		w.at = t.key.positionOf(w.key)
		return nil
	}
	if err := t.checkKeyIn(w.item); err != nil {
		return err
	}
	w.at = t.key.positionOf(w.item)
	t.mu.RLock() // for the indexes
	defer t.mu.RUnlock()
	return t.checkResult(w.item, itemTooLarge)
}

// decide returns the item after the write. It requires the lock of the table.
func (w *write) decide(old value.Item) (next value.Item, err error) {
	if w.condition != nil {
		holds, err := w.condition.Holds(old)
		if err != nil {
			return nil, err
		}
		if !holds {
			failed := &types.ConditionalCheckFailedException{Message: aws.String(conditionFailed)}
			if w.returnOld {
				failed.Item = old
			}
			return nil, failed
		}
	}
	switch w.kind {
	case putItem:
		return w.item, nil
	case deleteItem:
		return nil, nil
	case checkItem:
		return old, nil
	}
	if next = old; next == nil {
		next = w.key
	}
	if w.update == nil {
		return next, nil
	}
	if err := w.checkParts(); err != nil {
		return nil, mistaken{err}
	}
	if err := w.checkUpdate(); err != nil {
		return nil, err
	}
	// Source: API reference of UpdateItem: if there is no item, DELETE does nothing. DynamoDB does
	// not look at the paths either, although they lead nowhere.
	if old == nil && w.update.OnlyRemoves() {
		return nil, nil
	}
	if next, err = w.update.Apply(next); err != nil {
		return nil, err
	}
	if err := value.CheckNesting(next); err != nil {
		return nil, err
	}
	return next, plain(w.t.checkResult(next, "Item size to update has exceeded the maximum allowed size"))
}

// checkParts refuses an update of a part of a key attribute, because keys have no parts.
func (w *write) checkParts() error {
	if w.update == nil {
		return nil
	}
	parts := w.update.PartsOf()
	if len(parts) == 0 {
		return nil
	}
	const message = "Key attributes must be scalars; list random access '[]' and map lookup '.' are not allowed: "
	for _, k := range w.t.key.attributes() {
		if slices.Contains(parts, k.name) {
			return apierror.Validation(message+"Key: %s", k.name)
		}
	}
	for _, ix := range w.t.indexes {
		for _, k := range ix.key.attributes() {
			if slices.Contains(parts, k.name) {
				return apierror.Validation(message+"IndexKey: %s", k.name)
			}
		}
	}
	return nil
}

// checkUpdate refuses an update that would change the key of the item.
func (w *write) checkUpdate() error {
	for _, name := range w.update.Attributes() {
		for _, k := range w.t.key.attributes() {
			if k.name == name {
				return apierror.Validation("One or more parameter values were invalid: "+
					"Cannot update attribute %s. This attribute is part of the key", name)
			}
		}
	}
	return nil
}

// checkResult checks an item to be stored against the indexes and the size limit.
func (t *table) checkResult(item value.Item, tooLarge string) error {
	for _, ix := range t.indexes {
		if err := ix.checkItem(item); err != nil {
			return err
		}
	}
	size := value.ItemSize(item)
	if size <= value.MaxItemSize/(1+len(t.indexes)) {
		return nil // even with a copy in each index
	}
	// The entries of local indexes count too. Source: Developer Guide, "Local secondary indexes".
	at := &row{position: t.key.positionOf(item), item: item, size: size}
	for _, ix := range t.indexes {
		if e := ix.entry(t, at); e != nil && !ix.global {
			size += e.size
		}
	}
	if size > value.MaxItemSize {
		return apierror.Validation("%s", tooLarge)
	}
	return nil
}

const conditionFailed = "The conditional request failed"

// run executes a write that is the whole request, and returns the item before and after.
func (db *Database) run(
	c *Cost, t *table, w *write, onFailure types.ReturnValuesOnConditionCheckFailure,
) (old, next value.Item, err error) {
	w.onFailure(onFailure)
	if err := w.in(t); err != nil {
		return nil, nil, err
	}
	if w.unfit != nil {
		return nil, nil, w.unfit
	}
	return db.perform(c, w)
}

// perform executes a single write.
func (db *Database) perform(c *Cost, w *write) (old, next value.Item, err error) {
	if err := db.lock(w.t); err != nil {
		return nil, nil, err
	}
	defer w.t.mu.Unlock()
	if _, held := w.t.held[w.at]; held {
		return nil, nil, &types.TransactionConflictException{Message: aws.String(ConflictMessage)}
	}
	before := w.t.at(w.at)
	old = before.content()
	if next, err = w.decide(old); err != nil {
		if !isFailedCondition(err) {
			return old, nil, plain(err)
		}
		units := writeUnits(int(sizeOf(before))) // a false condition costs as much as a write
		if throttled := db.admit(c, func() []demand { return []demand{w.demand(units)} }); throttled != nil {
			return old, nil, throttled
		}
		c.write(w.t, nil, units)
		return old, nil, err
	}
	if err := db.admit(c, func() []demand { return w.t.demands(w.at, w.named(), next, 1) }); err != nil {
		return old, nil, err
	}
	db.replace(c, w.t, w.at, next, 1)
	return old, next, nil
}

func isFailedCondition(err error) bool {
	_, failed := err.(*types.ConditionalCheckFailedException) //nolint:errorlint // made by decide
	return failed
}

// named returns an item with the key of the write.
func (w *write) named() value.Item {
	if w.kind == putItem {
		return w.item
	}
	return w.key
}

// demand returns the demand of a write that leaves its item unchanged.
func (w *write) demand(units float64) demand { return w.t.demand(w.at, w.named(), units, true) }

// ConflictMessage is the message of an error about an item that a transaction holds.
const ConflictMessage = "Transaction is ongoing for the item"
