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

// OpenExisting opens a read model for a tool that is not one of its programs. It creates nothing,
// and [Config].Topics is optional.
//
// Without Topics, the topics of a generation are read at each call: those of its own groups and
// those of the groups of the serving generation. So a tool needs no change when a program starts to
// consume another topic. This has two limits. OpenExisting does not know a topic that the consumers
// of a new generation will consume but have not started yet, if the serving generation does not
// have it. And a generation that no longer consumes a topic on purpose never counts as begun. Set
// Topics in these cases.
//
// Without [Config].Forms it accepts any form: [Model.Serving] returns the generation that serves,
// and [Model.Begin] begins a generation of the same form. To begin another form, name that form.
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

// topics returns the topics that a generation consumes.
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

// List returns the read models of a table with their generations, by name. Table is [Config].Table;
// empty means [DefaultTable]. The name of a read model is the Model of its serving generation. List
// costs half a read unit for each 4 KB of the table, which has about 200 bytes for each read model.
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
