package engine

import (
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/millrace-dev/millrace/dynamotest/internal/apierror"
	"github.com/millrace-dev/millrace/dynamotest/internal/expression"
	"github.com/millrace-dev/millrace/dynamotest/internal/value"
)

// write is a change of one item, checked as far as it can be without the lock of its table.
type write struct {
	kind      writeKind
	t         *table
	key       value.Item
	at        position
	condition *expression.Condition
	item      value.Item         // of a put
	update    *expression.Update // nil for an update that only makes sure that the item is there
	returnOld bool               // where the condition fails
}

type writeKind int

const (
	putItem writeKind = iota
	updateItem
	deleteItem
	checkItem // leaves the item as it is
)

func (w *write) onFailure(v types.ReturnValuesOnConditionCheckFailure) {
	w.returnOld = v == types.ReturnValuesOnConditionCheckFailureAllOld
}

// putting makes the write of a whole item.
func (db *Database) putting(tableName *string, item value.Item, conditionSource *string, a *expression.Attributes) (write, error) {
	c, err := condition("ConditionExpression", conditionSource, a)
	if err != nil {
		return write{}, err
	}
	if err := a.CheckUsed(); err != nil {
		return write{}, err
	}
	t, err := db.table(tableName)
	if err != nil {
		return write{}, err
	}
	if item, err = value.NormalizeItem(item); err != nil {
		return write{}, err
	}
	if err := t.checkKeyIn(item); err != nil {
		return write{}, err
	}
	return write{kind: putItem, t: t, at: t.key.positionOf(item), condition: c, item: item}, nil
}

// onKey makes a write of the item with a key.
func (db *Database) onKey(kind writeKind, tableName *string, key value.Item, conditionSource, updateSource *string, a *expression.Attributes) (write, error) {
	w := write{kind: kind}
	var err error
	if updateSource != nil {
		if w.update, err = expression.ParseUpdate(*updateSource, a); err != nil {
			return write{}, err
		}
	}
	if w.condition, err = condition("ConditionExpression", conditionSource, a); err != nil {
		return write{}, err
	}
	if err := a.CheckUsed(); err != nil {
		return write{}, err
	}
	if w.t, err = db.table(tableName); err != nil {
		return write{}, err
	}
	if w.key, err = value.NormalizeItem(key); err != nil {
		return write{}, err
	}
	if err := w.t.checkKey(w.key); err != nil {
		return write{}, err
	}
	w.at = w.t.key.positionOf(w.key)
	return w, nil
}

// decide tells what becomes of the item, under the lock of the table.
func (w *write) decide(old value.Item) (next value.Item, err error) {
	if err := w.checkKeys(); err != nil {
		return nil, err
	}
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
		return w.item, w.checkResult(w.item, "Item size has exceeded the maximum allowed size")
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
	if next, err = w.update.Apply(next); err != nil {
		return nil, err
	}
	return next, w.checkResult(next, "Item size to update has exceeded the maximum allowed size")
}

// checkKeys refuses an update that would change the key of the item.
func (w *write) checkKeys() error {
	if w.update == nil {
		return nil
	}
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

// checkResult checks an item that is to be stored against the indexes and the limit of its size.
func (w *write) checkResult(item value.Item, tooLarge string) error {
	for _, ix := range w.t.indexes {
		if err := ix.checkItem(item); err != nil {
			return err
		}
	}
	if value.ItemSize(item) > value.MaxItemSize {
		return apierror.Validation("%s", tooLarge)
	}
	return nil
}

const conditionFailed = "The conditional request failed"

// run makes the write on its own, and gives the item before and after.
func (db *Database) run(c *Cost, w *write) (old, next value.Item, err error) {
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
		c.write(w.t, nil, writeUnits(int(sizeOf(before)))) // a condition that fails costs what a write does
		return old, nil, err
	}
	db.replace(c, w.t, w.at, next, 1)
	return old, next, nil
}

// ConflictMessage is the text of an error about an item that a transaction holds.
const ConflictMessage = "Transaction is ongoing for the item"
