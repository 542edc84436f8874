package readmodel

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/millrace-dev/millrace/internal/dynamo"
	"github.com/millrace-dev/millrace/journal"
)

// OpenExisting returns a read model to those who operate it and are none of its programs: it makes
// none, and needs no [Config].Topics. Without them the topics of a generation are those that its
// own groups and the groups of the serving generation are on, at each look. So nobody has to tell a
// tool when a program takes up a topic. What that cannot know is a topic that a generation's
// consumers will take up and have not yet, as none of the serving one has; and a generation that
// gives a topic up on purpose never counts as begun. Give the topics then.
//
// Without [Config].Forms it takes any: [Model.Serving] returns what serves, and [Model.Begin]
// begins a generation of the same form. Name one form to begin that.
//
// Errors: [ErrNoModel], and those of [Open].
func OpenExisting(ctx context.Context, client Client, config Config) (*Model, error) {
	m, err := newModel(client, config, false)
	if err != nil {
		return nil, err
	}
	var s state
	err = dynamo.Start(ctx, func(ctx context.Context) (err error) {
		s, err = m.read(ctx)
		return err
	})
	if err == nil && !s.exists() {
		err = fmt.Errorf("%w: %q in table %q", ErrNoModel, m.config.Name, m.config.Table)
	}
	if err != nil {
		return nil, err
	}
	return m, nil
}

// topics are those that a generation consumes.
func (m *Model) topics(ctx context.Context, g Generation) ([]string, error) {
	if len(m.config.Topics) > 0 {
		return m.config.Topics, nil
	}
	s, err := m.current(ctx)
	if err != nil {
		return nil, err
	}
	var topics []string
	for _, group := range []string{g.Group(), m.generation(s, s.serving).Group()} {
		of, err := m.groups.Topics(ctx, group)
		if err != nil {
			return nil, err
		}
		topics = append(topics, of...)
	}
	slices.Sort(topics)
	return slices.Compact(topics), nil
}

// List returns the read models of a table with their generations, by name: half a read unit for
// each 4 KB of the table, which has some 200 bytes for each. Table is [Config].Table, empty for
// [DefaultTable]. The
// names of the read models are those of their serving generations.
//
// Errors: [ErrCorrupt], [journal.ErrTableMissing], [journal.ErrThrottled], [journal.ErrAccess], the
// context's.
func List(ctx context.Context, client journal.Client, table string) (all []Generations, err error) {
	if table == "" {
		table = DefaultTable
	}
	var start item
	for {
		out, err := dynamo.Within(ctx, &dynamodb.ScanInput{TableName: &table, ExclusiveStartKey: start}, client.Scan, nil)
		if err != nil {
			return nil, fmt.Errorf("list read models: %w", explain(err, table))
		}
		for _, row := range out.Items {
			m := &Model{config: Config{Table: table}}
			if name, ok := row[keyAttribute].(*types.AttributeValueMemberS); ok {
				m.config.Name = name.Value
			}
			s, err := m.stateOf(row)
			if err != nil {
				return nil, fmt.Errorf("list read models: %w", err)
			}
			all = append(all, s.generations(m.config.Name))
		}
		if start = out.LastEvaluatedKey; start == nil {
			break
		}
	}
	slices.SortFunc(all, func(a, b Generations) int { return strings.Compare(a.Serving.Model, b.Serving.Model) })
	return all, nil
}
