package view

import (
	"context"
	"maps"
	"regexp"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/millrace-dev/millrace/examples/planningpoker/room"
	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/projection"
)

// Reactions returns the changes of the view for each event. openRoom and join put a row. The others
// update rows of users who have not left. Each event also records its number in the row of the
// room, so that a query can report the number of the last event that it shows.
//
// A repeated or late event changes nothing: each row records the last event that changed it, and a
// write with a false condition is dropped. If the view is rebuilt, the rows of expired rooms are
// not created again, since they would only wait until DynamoDB deletes them.
func (d *DAO) Reactions() []projection.Reaction {
	return []projection.Reaction{
		on(d.openRoom), on(d.join), on(d.leave), on(d.pick), on(d.reveal), on(d.refreshPokerTable), on(d.kick),
	}
}

func (d *DAO) openRoom(e room.Opened, source *journal.Record) []projection.Write {
	if d.past(e.ExpiresAt) {
		return nil
	}
	return []projection.Write{d.put(source, source.Aggregate.Value, attributes{
		attrItemType: projection.Text(itemRoom), attrStatus: projection.Text(statusPicking), attrName: projection.Text(e.Name), attrDeck: texts(e.Deck),
		attrRound: projection.Number(1), attrTitle: projection.Text(e.Title), attrExpiresAt: projection.Number(e.ExpiresAt.Unix()), attrChanged: texts(nil),
	})}
}

func (d *DAO) join(e room.Joined, source *journal.Record) []projection.Write {
	if d.past(e.ExpiresAt) {
		return nil
	}
	user := d.put(source, e.UserID, attributes{
		attrItemType: projection.Text(itemUser), attrStatus: projection.Text(statusActive), attrName: projection.Text(e.Name),
		attrJoined: projection.Number(source.Number), attrExpiresAt: projection.Number(e.ExpiresAt.Unix()),
		attrPresent: projection.Number(source.OccurredAt.Add(presenceTimeout).Unix()),
	})
	return []projection.Write{user, d.updateRoom(source, "", nil, e.UserID)}
}

func (d *DAO) leave(e room.Left, source *journal.Record) []projection.Write {
	return d.setLeft(source, e.UserID)
}

func (d *DAO) kick(e room.Kicked, source *journal.Record) []projection.Write {
	return d.setLeft(source, e.UserID)
}

func (d *DAO) setLeft(source *journal.Record, userID string) []projection.Write {
	return []projection.Write{
		d.updateUser(source, userID, ", #status = :to REMOVE #card", attributes{":to": projection.Text(statusLeft)}),
		d.updateRoom(source, "", nil, userID),
	}
}

func (d *DAO) pick(e room.Picked, source *journal.Record) []projection.Write {
	return []projection.Write{
		d.updateUser(source, e.UserID, ", #card = :card", attributes{":card": projection.Text(e.Card)}),
		d.updateRoom(source, "", nil, e.UserID),
	}
}

func (d *DAO) reveal(_ room.Revealed, source *journal.Record) []projection.Write {
	return []projection.Write{d.updateRoom(source, ", #status = :to", attributes{":to": projection.Text(statusRevealed)})}
}

func (d *DAO) refreshPokerTable(e room.TableRefreshed, source *journal.Record) []projection.Write {
	writes := []projection.Write{d.updateRoom(source, ", #status = :to, #round = #round + :one, #title = :title",
		attributes{":to": projection.Text(statusPicking), ":one": projection.Number(1), ":title": projection.Text(e.Title)}, e.UserIDs...)}
	for _, userID := range e.UserIDs {
		writes = append(writes, d.updateUser(source, userID, " REMOVE #card", nil))
	}
	return writes
}

func (d *DAO) put(source *journal.Record, itemKey string, item attributes) projection.Write {
	maps.Copy(item, d.rows.Table.Key(source.Aggregate.Value, itemKey))
	item[attrVersion] = projection.Number(source.Number)
	condition := "attribute_not_exists(#version) OR #version < :version"
	return projection.Put(types.Put{
		TableName: &d.rows.Table.Name, Item: item, ConditionExpression: &condition,
		ExpressionAttributeNames: names(condition), ExpressionAttributeValues: attributes{":version": projection.Number(source.Number)},
	}).Idempotent()
}

// updateUser returns a write that changes the row of a user who has not left.
func (d *DAO) updateUser(source *journal.Record, userID, change string, values attributes) projection.Write {
	return d.update(source, userID, change, values, "#status <> :left AND #item_type = :type",
		attributes{":left": projection.Text(statusLeft), ":type": projection.Text(itemUser)})
}

// updateRoom returns a write that changes the row of the room, and records there the users of the
// event.
func (d *DAO) updateRoom(source *journal.Record, change string, values attributes, changed ...string) projection.Write {
	return d.update(source, source.Aggregate.Value, ", #changed = :changed"+change, values, "#item_type = :type",
		attributes{":changed": texts(changed), ":type": projection.Text(itemRoom)})
}

func (d *DAO) update(
	source *journal.Record, itemKey, change string, values attributes, condition string, more attributes,
) projection.Write {
	change = "SET #version = :version" + change
	condition += " AND #version < :version"
	all := attributes{":version": projection.Number(source.Number)}
	maps.Copy(all, values)
	maps.Copy(all, more)
	return projection.Update(types.Update{
		TableName: &d.rows.Table.Name, Key: d.rows.Table.Key(source.Aggregate.Value, itemKey), UpdateExpression: &change, ConditionExpression: &condition,
		ExpressionAttributeNames: names(change + condition), ExpressionAttributeValues: all,
	}).Idempotent()
}

var placeholder = regexp.MustCompile(`#\w+`)

// names maps the placeholders of an expression to attributes. All names have a placeholder, since
// DynamoDB reserves words such as "status".
func names(expression string) map[string]string {
	all := map[string]string{}
	for _, name := range placeholder.FindAllString(expression, -1) {
		all[name] = name[1:]
	}
	return all
}

// on returns the reaction to an event.
func on[E interface{ EventType() string }](do func(E, *journal.Record) []projection.Write) projection.Reaction {
	return projection.On(func(_ context.Context, event E, source *journal.Record) ([]projection.Write, error) {
		return do(event, source), nil
	})
}
