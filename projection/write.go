package projection

import (
	"regexp"
	"strconv"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/journal"
)

// Write is one action on a read model. One transaction may name an item only once, so a reaction
// returns at most one Write for each item.
type Write struct {
	item       types.TransactWriteItem
	idempotent bool
	// source is the attribute of an IdempotentUpdate. Its false condition means that there is
	// nothing to do only if the item has recorded this event or a later one.
	source string
	number uint64
}

// Put returns a [Write] that writes a whole item.
func Put(p types.Put) Write { return Write{item: types.TransactWriteItem{Put: &p}} }

// Update returns a [Write] that changes attributes of an item, and creates the item if there is
// none.
func Update(u types.Update) Write { return Write{item: types.TransactWriteItem{Update: &u}} }

// Delete returns a [Write] that deletes an item.
func Delete(d types.Delete) Write { return Write{item: types.TransactWriteItem{Delete: &d}} }

// Check returns a [Write] that writes nothing. If its condition is false, none of the writes is
// made.
func Check(c types.ConditionCheck) Write {
	return Write{item: types.TransactWriteItem{ConditionCheck: &c}}
}

// Idempotent returns a write for which a false condition means that there is nothing to do: the
// write is dropped, and the rest commits.
func (w Write) Idempotent() Write {
	w.idempotent = true
	return w
}

func (w Write) table() string {
	switch {
	case w.item.Put != nil:
		return *w.item.Put.TableName
	case w.item.Update != nil:
		return *w.item.Update.TableName
	case w.item.Delete != nil:
		return *w.item.Delete.TableName
	default:
		return *w.item.ConditionCheck.TableName
	}
}

// IdempotentUpdate returns an update that an event makes at most once, and never after a later
// event of the same aggregate. The item records the number of the aggregate's last event that
// updated it, in the attribute named by [SourceAttribute]. An older event does not change the item,
// and the position moves on.
//
// If u has a condition, it must be true as well. If it is false for an event that is not older, the
// error is a [*ConditionError]. Each source aggregate takes one attribute in the item, of about the
// length of its id.
func IdempotentUpdate(u types.Update, event *journal.Record) Write {
	const name, value = "#millrace_source", ":millrace_number"
	u.ExpressionAttributeNames = with(u.ExpressionAttributeNames, name, SourceAttribute(event.Aggregate))
	u.ExpressionAttributeValues = with(u.ExpressionAttributeValues, value, Number(event.Number))

	assignment := name + " = " + value
	expression := ""
	if u.UpdateExpression != nil {
		expression = *u.UpdateExpression
	}
	if at := setClause.FindStringIndex(expression); at != nil {
		expression = expression[:at[1]] + assignment + ", " + expression[at[1]:]
	} else {
		expression += " SET " + assignment
	}
	u.UpdateExpression = &expression

	condition := "(attribute_not_exists(" + name + ") OR " + name + " < " + value + ")"
	if u.ConditionExpression != nil {
		condition += " AND (" + *u.ConditionExpression + ")"
	}
	u.ConditionExpression = &condition
	u.ReturnValuesOnConditionCheckFailure = types.ReturnValuesOnConditionCheckFailureAllOld
	w := Update(u).Idempotent()
	w.source, w.number = SourceAttribute(event.Aggregate), event.Number
	return w
}

// done reports whether the reason for a false condition shows that there is nothing to do.
func (w Write) done(reason types.CancellationReason) bool {
	if w.source == "" {
		return w.idempotent
	}
	last, ok := reason.Item[w.source].(*types.AttributeValueMemberN)
	if !ok {
		return false
	}
	number, err := strconv.ParseUint(last.Value, 10, 64)
	return err == nil && number >= w.number
}

// setClause finds the SET clause of an update expression. SET is a reserved word, so it cannot be
// the name of an attribute in an expression.
var setClause = regexp.MustCompile(`(?i)(?:^|\s)SET\s+`)

// SourceAttribute returns the name of the attribute in which an item records the last event of an
// aggregate that updated it, such as "last_event/5:order-42". It includes the length of the type,
// so that different ids with the same text have different attributes.
func SourceAttribute(id aggregate.ID) string {
	return "last_event/" + strconv.Itoa(len(id.Type)) + ":" + id.String()
}

func with[V any](m map[string]V, key string, value V) map[string]V {
	c := make(map[string]V, len(m)+1)
	for k, v := range m {
		c[k] = v
	}
	c[key] = value
	return c
}
