package engine

import (
	"slices"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/millrace-dev/millrace/dynamotest/internal/apierror"
	"github.com/millrace-dev/millrace/dynamotest/internal/expression"
	"github.com/millrace-dev/millrace/dynamotest/internal/value"
)

// Limits of a transaction. Source: API reference of TransactWriteItems.
const (
	maxActions          = 100
	maxTransactionBytes = 4 << 20
	maxTokenLength      = 36
)

// TransactWriteItems implements the operation.
func (db *Database) TransactWriteItems(c *Cost, in *dynamodb.TransactWriteItemsInput, f *Interference) (*dynamodb.TransactWriteItemsOutput, error) {
	if err := first(
		counted("transactItems", "[]", len(in.TransactItems), maxActions),
		checkToken(in.ClientRequestToken),
	); err != nil {
		return nil, err
	}
	writes := make([]write, len(in.TransactItems))
	bytes := 0
	for i, action := range in.TransactItems {
		var err error
		if writes[i], err = parseAction(action); err != nil {
			return nil, err
		}
	}
	done, repeated, err := db.tokens.begin(db.config.Now(), in)
	if err != nil {
		return nil, err
	}
	made := false
	defer func() { done(db.config.Now(), made) }()
	var misfit error
	for i, action := range in.TransactItems {
		t, err := db.table(tableOfAction(action))
		if err != nil {
			return nil, err
		}
		w := &writes[i]
		if err := w.in(t); err != nil {
			return nil, err
		}
		if w.unfit == nil && slices.ContainsFunc(writes[:i], w.isOn) {
			return nil, apierror.Validation("Transaction request cannot include multiple operations on one item")
		}
		// DynamoDB reports only the first of these, and evaluates no condition.
		if w.unfit != nil && misfit == nil {
			misfit = Cancelled(len(writes), []int{i}, "ValidationError", message(w.unfit))
		}
		bytes += value.ItemSize(w.item) + value.ItemSize(w.key)
	}
	if bytes > maxTransactionBytes {
		return nil, apierror.Validation("Transaction payload size cannot exceed 4MB. Payload Size: %d", bytes)
	}
	if misfit != nil {
		return nil, misfit
	}

	if repeated {
		for i := range writes {
			w := &writes[i]
			if err := db.rlock(w.t); err != nil {
				return nil, err
			}
			units := transactional * readUnits(int(sizeOf(w.t.at(w.at))))
			w.t.mu.RUnlock()
			if db.admit(c, w.t.reading(w.at, w.named(), units)) != nil {
				return nil, Cancelled(len(writes), []int{i}, ThrottledCode, ThrottledMessage)
			}
			c.read(w.t, nil, units)
		}
	} else if err := db.transact(c, writes, f); err != nil {
		return nil, err
	}
	made = true
	out := &dynamodb.TransactWriteItemsOutput{}
	for i := range writes {
		if m := metrics(&writes[i], in.ReturnItemCollectionMetrics); m != nil {
			if out.ItemCollectionMetrics == nil {
				out.ItemCollectionMetrics = map[string][]types.ItemCollectionMetrics{}
			}
			name := writes[i].t.name
			out.ItemCollectionMetrics[name] = append(out.ItemCollectionMetrics[name], *m)
		}
	}
	return out, nil
}

func checkToken(token *string) error {
	switch {
	case token == nil:
		return nil
	case *token == "":
		return apierror.Validation("1 validation error detected: Value '' at 'clientRequestToken' failed to satisfy constraint: " +
			"Member must have length greater than or equal to 1")
	case len(*token) > maxTokenLength:
		return apierror.Validation("1 validation error detected: Value '%s' at 'clientRequestToken' failed to satisfy constraint: "+
			"Member must have length less than or equal to %d", *token, maxTokenLength)
	}
	return nil
}

func tableOfAction(action types.TransactWriteItem) *string {
	switch {
	case action.Put != nil:
		return action.Put.TableName
	case action.Update != nil:
		return action.Update.TableName
	case action.Delete != nil:
		return action.Delete.TableName
	case action.ConditionCheck != nil:
		return action.ConditionCheck.TableName
	}
	return nil
}

// parseAction makes the write of an action, without its table.
func parseAction(action types.TransactWriteItem) (w write, err error) {
	given := 0
	var a *expression.Attributes
	prepare := func(
		names map[string]string, values value.Item, onFailure types.ReturnValuesOnConditionCheckFailure, sources ...source,
	) {
		given++
		if a, err = placeholders(names, values, sources...); err == nil {
			err = checkReturnOnFailure(onFailure)
		}
	}
	if p := action.Put; p != nil {
		if p.Item == nil {
			return write{}, required("transactItems.member.put.item")
		}
		if prepare(p.ExpressionAttributeNames, p.ExpressionAttributeValues, p.ReturnValuesOnConditionCheckFailure,
			conditionSource(p.ConditionExpression)); err == nil {
			w, err = putting(p.Item, p.ConditionExpression, a)
			w.onFailure(p.ReturnValuesOnConditionCheckFailure)
		}
	}
	if u := action.Update; u != nil {
		if err := first(present("transactItems.member.update.key", u.Key != nil),
			present("transactItems.member.update.updateExpression", u.UpdateExpression != nil)); err != nil {
			return write{}, err
		}
		if prepare(u.ExpressionAttributeNames, u.ExpressionAttributeValues, u.ReturnValuesOnConditionCheckFailure,
			source{"UpdateExpression", u.UpdateExpression, true}, conditionSource(u.ConditionExpression)); err == nil {
			w, err = onKey(updateItem, u.Key, u.ConditionExpression, u.UpdateExpression, a)
			w.onFailure(u.ReturnValuesOnConditionCheckFailure)
		}
	}
	if d := action.Delete; d != nil {
		if d.Key == nil {
			return write{}, required("transactItems.member.delete.key")
		}
		if prepare(d.ExpressionAttributeNames, d.ExpressionAttributeValues, d.ReturnValuesOnConditionCheckFailure,
			conditionSource(d.ConditionExpression)); err == nil {
			w, err = onKey(deleteItem, d.Key, d.ConditionExpression, nil, a)
			w.onFailure(d.ReturnValuesOnConditionCheckFailure)
		}
	}
	if k := action.ConditionCheck; k != nil {
		if err := first(present("transactItems.member.conditionCheck.key", k.Key != nil),
			present("transactItems.member.conditionCheck.conditionExpression", k.ConditionExpression != nil)); err != nil {
			return write{}, err
		}
		if prepare(k.ExpressionAttributeNames, k.ExpressionAttributeValues, k.ReturnValuesOnConditionCheckFailure,
			conditionSource(k.ConditionExpression)); err == nil {
			w, err = onKey(checkItem, k.Key, k.ConditionExpression, nil, a)
			w.onFailure(k.ReturnValuesOnConditionCheckFailure)
		}
	}
	if given != 1 {
		return write{}, apierror.Validation("TransactItems can only contain one of Check, Put, Update or Delete")
	}
	return w, err
}

// transact executes all writes or none.
func (db *Database) transact(c *Cost, writes []write, f *Interference) error {
	next, err := db.prepare(c, writes, f)
	if err != nil || !f.pauses() {
		return err
	}
	defer release(writes) // also if a hook does not return
	if f.Prepared != nil {
		f.Prepared()
	}
	order := f.Order
	if order == nil {
		order = make([]int, len(writes))
		for i := range order {
			order[i] = i
		}
	}
	written := 0
	for _, i := range order {
		w := &writes[i]
		w.t.mu.Lock()
		db.apply(c, w, next[i])
		delete(w.t.held, w.at)
		w.t.mu.Unlock()
		if w.kind != checkItem {
			if written++; f.Applied != nil {
				f.Applied(written)
			}
		}
	}
	return nil
}

// prepare decides whether all writes can be executed. It executes them, or holds their items if
// there are hooks.
func (db *Database) prepare(c *Cost, writes []write, f *Interference) (next []value.Item, err error) {
	tables := make([]*table, 0, len(writes))
	for i := range writes {
		tables = append(tables, writes[i].t)
	}
	unlock, err := db.lockAll(tables, db.lock, (*table).unlock)
	if err != nil {
		return nil, err
	}
	defer unlock()
	next = make([]value.Item, len(writes))
	reasons := make([]types.CancellationReason, len(writes))
	cancelled, billed := false, false
	for i := range writes {
		w := &writes[i]
		if _, held := w.t.held[w.at]; held {
			reasons[i] = reason("TransactionConflict", ConflictMessage, nil)
		} else {
			if next[i], err = w.decide(w.t.at(w.at).content()); isMistaken(err) {
				return nil, plain(err)
			}
			reasons[i] = reasonOf(plain(err))
		}
		cancelled = cancelled || *reasons[i].Code != none
		billed = billed || *reasons[i].Code == "ConditionalCheckFailed"
	}
	if billed || !cancelled {
		for _, i := range db.admitAll(c, writes, next, billed) {
			reasons[i], cancelled, billed = reason(ThrottledCode, ThrottledMessage, nil), true, false
		}
	}
	if billed { // DynamoDB needs these units to find that a condition is false
		for i := range writes {
			w := &writes[i]
			c.write(w.t, nil, transactional*writeUnits(int(sizeOf(w.t.at(w.at)))))
		}
	}
	if cancelled {
		return nil, cancellation(reasons)
	}
	for i := range writes {
		w := &writes[i]
		if !f.pauses() {
			db.apply(c, w, next[i])
			continue
		}
		if w.t.held == nil {
			w.t.held = map[position]*write{}
		}
		w.t.held[w.at] = w
	}
	return next, nil
}

// admitAll consumes the units of a transaction. If a partition has too few left, it consumes
// nothing, and returns the indexes of the writes that need such a partition. A transaction with a
// false condition leaves its items unchanged.
func (db *Database) admitAll(c *Cost, writes []write, next []value.Item, fails bool) (short []int) {
	if db.throughput == nil {
		return nil
	}
	needs := make([][]demand, len(writes))
	for i := range writes {
		w := &writes[i]
		if fails || w.kind == checkItem {
			needs[i] = []demand{w.demand(transactional * writeUnits(int(sizeOf(w.t.at(w.at)))))}
		} else {
			needs[i] = w.t.demands(w.at, w.named(), next[i], transactional)
		}
	}
	return db.throughput.take(c, needs...)
}

// release releases the items of a transaction.
func release(writes []write) {
	for i := range writes {
		w := &writes[i]
		w.t.mu.Lock()
		if w.t.held[w.at] == w { // another transaction may hold it by now
			delete(w.t.held, w.at)
		}
		w.t.mu.Unlock()
	}
}

func (db *Database) apply(c *Cost, w *write, next value.Item) {
	if w.kind == checkItem {
		c.write(w.t, nil, transactional*writeUnits(int(sizeOf(w.t.at(w.at)))))
		return
	}
	db.replace(c, w.t, w.at, next, transactional)
}
