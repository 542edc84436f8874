package engine

import (
	"errors"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go"

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

// Pauses slow a transaction down so that others meet it on its way. Without them it happens at once. While it is
// under way its items are held: others that would write them, or read them in a transaction, meet a conflict;
// plain reads see each item as it is.
type Pauses struct {
	// Prepared runs when all conditions hold and nothing is written.
	Prepared func()
	// Applied runs after each action but the last, with the number of those that are written.
	Applied func(actions int)
}

// TransactWriteItems is DynamoDB's. Pauses may be nil.
func (db *Database) TransactWriteItems(c *Cost, in *dynamodb.TransactWriteItemsInput, pauses *Pauses) (*dynamodb.TransactWriteItemsOutput, error) {
	if err := first(
		counted("transactItems", "[]", len(in.TransactItems), maxActions),
		checkToken(in.ClientRequestToken),
	); err != nil {
		return nil, err
	}
	writes := make([]write, len(in.TransactItems))
	seen := make(map[place]bool, len(writes))
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
	defer func() { done(made) }()
	for i, action := range in.TransactItems {
		t, err := db.table(tableOfAction(action))
		if err != nil {
			return nil, err
		}
		w := &writes[i]
		if err := w.in(t); err != nil {
			return nil, err
		}
		if w.unfit == nil {
			if seen[place{w.t, w.at}] {
				return nil, apierror.Validation("Transaction request cannot include multiple operations on one item")
			}
			seen[place{w.t, w.at}] = true
		}
		bytes += value.ItemSize(w.item) + value.ItemSize(w.key)
	}
	if bytes > maxTransactionBytes {
		return nil, apierror.Validation("Transaction payload size cannot exceed 4MB. Payload Size: %d", bytes)
	}

	if repeated {
		for i := range writes {
			w := &writes[i]
			if err := db.rlock(w.t); err != nil {
				return nil, err
			}
			c.read(w.t, nil, transactional*readUnits(int(sizeOf(w.t.at(w.at)))))
			w.t.mu.RUnlock()
		}
	} else if err := db.transact(c, writes, pauses); err != nil {
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

// parseAction makes the write that an action asks for, but for its table.
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
		if prepare(p.ExpressionAttributeNames, p.ExpressionAttributeValues, p.ReturnValuesOnConditionCheckFailure,
			conditionSource(p.ConditionExpression)); err == nil {
			w, err = putting(p.Item, p.ConditionExpression, a)
			w.onFailure(p.ReturnValuesOnConditionCheckFailure)
		}
	}
	if u := action.Update; u != nil {
		if prepare(u.ExpressionAttributeNames, u.ExpressionAttributeValues, u.ReturnValuesOnConditionCheckFailure,
			source{"UpdateExpression", u.UpdateExpression, true}, conditionSource(u.ConditionExpression)); err == nil {
			w, err = onKey(updateItem, u.Key, u.ConditionExpression, u.UpdateExpression, a)
			w.onFailure(u.ReturnValuesOnConditionCheckFailure)
		}
	}
	if d := action.Delete; d != nil {
		if prepare(d.ExpressionAttributeNames, d.ExpressionAttributeValues, d.ReturnValuesOnConditionCheckFailure,
			conditionSource(d.ConditionExpression)); err == nil {
			w, err = onKey(deleteItem, d.Key, d.ConditionExpression, nil, a)
			w.onFailure(d.ReturnValuesOnConditionCheckFailure)
		}
	}
	if k := action.ConditionCheck; k != nil {
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

// transact makes all writes or none.
func (db *Database) transact(c *Cost, writes []write, pauses *Pauses) error {
	tables := make([]*table, 0, len(writes))
	for i := range writes {
		tables = append(tables, writes[i].t)
	}
	unlock, err := db.lockAll(tables, db.lock, (*table).unlock)
	if err != nil {
		return err
	}
	next := make([]value.Item, len(writes))
	reasons := make([]types.CancellationReason, len(writes))
	cancelled := false
	var mistake error
	for i := range writes {
		w := &writes[i]
		before := w.t.at(w.at)
		if _, held := w.t.held[w.at]; held {
			reasons[i] = reason("TransactionConflict", ConflictMessage, nil)
		} else {
			next[i], err = w.decide(before.content())
			var late mistaken
			if errors.As(err, &late) && mistake == nil {
				mistake = late.error
			}
			reasons[i] = reasonOf(plain(err))
		}
		cancelled = cancelled || *reasons[i].Code != none
	}
	if cancelled {
		for i := range writes { // what DynamoDB does to find out is billed
			w := &writes[i]
			c.write(w.t, nil, transactional*writeUnits(int(sizeOf(w.t.at(w.at)))))
		}
		unlock()
		if mistake != nil {
			return mistake
		}
		return cancellation(reasons)
	}
	if pauses == nil {
		for i := range writes {
			db.apply(c, &writes[i], next[i])
		}
		unlock()
		return nil
	}
	for i := range writes {
		w := &writes[i]
		if w.t.held == nil {
			w.t.held = map[position]struct{}{}
		}
		w.t.held[w.at] = struct{}{}
	}
	unlock()
	if pauses.Prepared != nil {
		pauses.Prepared()
	}
	for i := range writes {
		w := &writes[i]
		w.t.mu.Lock()
		db.apply(c, w, next[i])
		delete(w.t.held, w.at)
		w.t.mu.Unlock()
		if pauses.Applied != nil && i+1 < len(writes) {
			pauses.Applied(i + 1)
		}
	}
	return nil
}

func (db *Database) apply(c *Cost, w *write, next value.Item) {
	if w.kind == checkItem {
		c.write(w.t, nil, transactional*writeUnits(int(sizeOf(w.t.at(w.at)))))
		return
	}
	db.replace(c, w.t, w.at, next, transactional)
}

// lockAll locks each of the tables once, in the order of their names, so that no two wait for each other.
func (db *Database) lockAll(tables []*table, lock func(*table) error, unlock func(*table)) (unlockAll func(), err error) {
	slices.SortFunc(tables, func(a, b *table) int {
		if c := strings.Compare(a.name, b.name); c != 0 {
			return c
		}
		return strings.Compare(a.id, b.id) // one of them is deleted
	})
	tables = slices.Compact(tables)
	for i, t := range tables {
		if err := lock(t); err != nil {
			for _, t := range tables[:i] {
				unlock(t)
			}
			return nil, err
		}
	}
	return func() {
		for _, t := range tables {
			unlock(t)
		}
	}, nil
}

func (t *table) unlock()  { t.mu.Unlock() }
func (t *table) runlock() { t.mu.RUnlock() }

// none is the code of an action that is not at fault.
const none = "None"

func reason(code, message string, item value.Item) types.CancellationReason {
	return types.CancellationReason{Code: &code, Message: &message, Item: item}
}

// reasonOf is how a cancelled transaction tells of an error of one action.
func reasonOf(err error) types.CancellationReason {
	if err == nil {
		return types.CancellationReason{Code: aws.String(none)}
	}
	var failed *types.ConditionalCheckFailedException
	if errors.As(err, &failed) {
		return reason("ConditionalCheckFailed", failed.ErrorMessage(), failed.Item)
	}
	var api smithy.APIError
	if errors.As(err, &api) && api.ErrorCode() == "ValidationException" {
		return reason("ValidationError", api.ErrorMessage(), nil)
	}
	return reason("InternalServerError", err.Error(), nil)
}

// Cancelled is the error of a transaction that was cancelled because of some of its actions.
func Cancelled(actions int, hit []int, code, message string) error {
	reasons := make([]types.CancellationReason, actions)
	for i := range reasons {
		reasons[i] = reasonOf(nil)
	}
	for _, i := range hit {
		reasons[i] = reason(code, message, nil)
	}
	return cancellation(reasons)
}

func cancellation(reasons []types.CancellationReason) error {
	codes := make([]string, len(reasons))
	for i, r := range reasons {
		codes[i] = *r.Code
	}
	return &types.TransactionCanceledException{
		Message: aws.String("Transaction cancelled, please refer cancellation reasons for specific reasons [" +
			strings.Join(codes, ", ") + "]"),
		CancellationReasons: reasons,
	}
}

// TransactGetItems is DynamoDB's.
func (db *Database) TransactGetItems(c *Cost, in *dynamodb.TransactGetItemsInput) (*dynamodb.TransactGetItemsOutput, error) {
	if err := counted("transactItems", "[]", len(in.TransactItems), maxActions); err != nil {
		return nil, err
	}
	type get struct {
		place
		projection *expression.Projection
	}
	gets := make([]get, len(in.TransactItems))
	tables := make([]*table, len(gets))
	seen := make(map[place]bool, len(gets))
	for i, action := range in.TransactItems {
		if action.Get == nil {
			return nil, required("transactItems." + "member.get")
		}
		g := &gets[i]
		var err error
		if g.t, err = db.table(action.Get.TableName); err != nil {
			return nil, err
		}
		a, err := placeholders(action.Get.ExpressionAttributeNames, nil, projectionSource(action.Get.ProjectionExpression))
		if err != nil {
			return nil, err
		}
		if g.projection, err = parseProjection(action.Get.ProjectionExpression, a); err != nil {
			return nil, err
		}
		if err := a.CheckUsed(); err != nil {
			return nil, err
		}
		if g.at, err = g.t.find(action.Get.Key); err != nil {
			var misfit unfit
			err, isUnfit := plain(err), errors.As(err, &misfit)
			if message(err) == mismatch && (isUnfit || len(action.Get.Key) != len(g.t.key.attributes())) {
				err = Cancelled(len(gets), []int{i}, "ValidationError", mismatch)
			}
			return nil, err
		}
		if seen[g.place] {
			return nil, apierror.Validation("Transaction request cannot include multiple operations on one item")
		}
		seen[g.place] = true
		tables[i] = g.t
	}
	unlock, err := db.lockAll(tables, db.rlock, (*table).runlock)
	if err != nil {
		return nil, err
	}
	defer unlock()
	reasons := make([]types.CancellationReason, len(gets))
	out := &dynamodb.TransactGetItemsOutput{Responses: make([]types.ItemResponse, len(gets))}
	cancelled, bytes := false, 0
	for i, g := range gets {
		reasons[i] = reasonOf(nil)
		if _, held := g.t.held[g.at]; held {
			reasons[i], cancelled = reason("TransactionConflict", ConflictMessage, nil), true
			continue
		}
		r := g.t.at(g.at)
		bytes += int(sizeOf(r))
		c.read(g.t, nil, transactional*readUnits(int(sizeOf(r))))
		if r != nil {
			c.Returned++
			out.Responses[i].Item = project(g.projection, r.item)
		}
	}
	if cancelled {
		return nil, cancellation(reasons)
	}
	if bytes > maxTransactionBytes {
		return nil, apierror.Validation("Transaction payload size cannot exceed 4MB. Payload Size: %d", bytes)
	}
	return out, nil
}
