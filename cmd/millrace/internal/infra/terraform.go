package infra

import (
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/millrace-dev/millrace/internal/permissions"
)

// WriteTerraform writes resources of the provider hashicorp/aws, formatted as `terraform fmt` does.
func (d Document) WriteTerraform(w io.Writer) error {
	if err := d.comment(w); err != nil {
		return err
	}
	var blocks []*block
	for _, table := range d.Tables {
		blocks = append(blocks, d.table(table))
	}
	for _, role := range d.Access.Roles {
		blocks = append(blocks, d.policyDocument(role))
	}
	blocks = append(blocks, d.lambdaResources()...)
	var texts []string
	for _, b := range blocks {
		texts = append(texts, b.text(""))
	}
	_, err := io.WriteString(w, strings.Join(texts, "\n"))
	return err
}

func (d Document) table(table Table) *block {
	in := table.Input
	b := &block{header: fmt.Sprintf("resource \"aws_dynamodb_table\" %q", table.Kind)}
	b.set("name", quoted(*in.TableName))
	b.set("billing_mode", quoted(string(in.BillingMode)))
	b.setCapacity(in.ProvisionedThroughput)
	b.setKeys(in.KeySchema)
	b.set("deletion_protection_enabled", strconv.FormatBool(d.DeletionProtection))
	if stream := in.StreamSpecification; stream != nil {
		b.set("stream_enabled", "true")
		b.set("stream_view_type", quoted(string(stream.StreamViewType)))
	}
	for _, a := range in.AttributeDefinitions {
		attribute := b.add("attribute")
		attribute.set("name", quoted(*a.AttributeName))
		attribute.set("type", quoted(string(a.AttributeType)))
	}
	for _, x := range in.GlobalSecondaryIndexes {
		index := b.add("global_secondary_index")
		index.set("name", quoted(*x.IndexName))
		index.setKeys(x.KeySchema)
		index.set("projection_type", quoted(string(x.Projection.ProjectionType)))
		if names := x.Projection.NonKeyAttributes; len(names) > 0 {
			index.set("non_key_attributes", "["+strings.Join(allQuoted(names), ", ")+"]")
		}
		index.setCapacity(x.ProvisionedThroughput)
	}
	if table.TimeToLive != "" {
		ttl := b.add("ttl")
		ttl.set("attribute_name", quoted(table.TimeToLive))
		ttl.set("enabled", "true")
	}
	b.add("point_in_time_recovery").set("enabled", strconv.FormatBool(d.PointInTime))
	return b
}

// policyDocument refers to the tables of the same document.
func (d Document) policyDocument(role permissions.Role) *block {
	b := &block{header: fmt.Sprintf("data \"aws_iam_policy_document\" %q", strings.ReplaceAll(role.Name, "-", "_"))}
	for _, s := range d.Access.statements(role, func(kind permissions.Resource, indexes bool) any {
		arn := fmt.Sprintf("aws_dynamodb_table.%s.arn", kind)
		if indexes {
			return []string{`"${` + arn + `}/index/*"`}
		}
		return []string{arn}
	}) {
		resources := s.Resource.([]string)
		if strings.HasPrefix(s.Sid, camel(string(permissions.Projected))) {
			resources = allQuoted(resources)
		}
		b.addStatement(s.Sid, s.Action, resources...)
	}
	return b
}

// addStatement adds a statement to a policy document. Resources are expressions.
func (b *block) addStatement(sid string, actions []string, resources ...string) {
	statement := b.add("statement")
	statement.set("sid", quoted(sid))
	statement.set("actions", "[\n"+indented(allQuoted(actions), "      ")+"    ]")
	statement.set("resources", "["+strings.Join(resources, ", ")+"]")
}

func indented(items []string, indent string) string {
	var text strings.Builder
	for _, item := range items {
		text.WriteString(indent + item + ",\n")
	}
	return text.String()
}

// block is a block of HCL: attributes and then blocks.
type block struct {
	header     string
	attributes []attribute
	blocks     []*block
}

type attribute struct{ name, value string }

func (b *block) add(header string) *block {
	inner := &block{header: header}
	b.blocks = append(b.blocks, inner)
	return inner
}

func (b *block) set(name, value string) { b.attributes = append(b.attributes, attribute{name, value}) }

func (b *block) setKeys(schema []types.KeySchemaElement) {
	partition, sort := keys(schema)
	b.set("hash_key", quoted(partition))
	if sort != "" {
		b.set("range_key", quoted(sort))
	}
}

func (b *block) setCapacity(units *types.ProvisionedThroughput) {
	if units != nil {
		b.set("read_capacity", strconv.FormatInt(*units.ReadCapacityUnits, 10))
		b.set("write_capacity", strconv.FormatInt(*units.WriteCapacityUnits, 10))
	}
}

// groups returns the attributes in groups whose equals signs are aligned. An attribute with several
// lines is a group of its own.
func (b *block) groups() (groups [][]attribute) {
	joins := false // the next attribute joins the last group
	for _, a := range b.attributes {
		isLong := strings.Contains(a.value, "\n")
		if joins && !isLong {
			groups[len(groups)-1] = append(groups[len(groups)-1], a)
		} else {
			groups = append(groups, []attribute{a})
		}
		joins = !isLong
	}
	return groups
}

// text returns the block in the canonical format.
func (b *block) text(indent string) string {
	var text strings.Builder
	text.WriteString(indent + b.header + " {\n")
	for _, group := range b.groups() {
		width := 0
		for _, a := range group {
			width = max(width, len(a.name))
		}
		for _, a := range group {
			fmt.Fprintf(&text, "%s  %-*s = %s\n", indent, width, a.name, a.value)
		}
	}
	for i, inner := range b.blocks {
		if i > 0 || len(b.attributes) > 0 {
			text.WriteString("\n")
		}
		text.WriteString(inner.text(indent + "  "))
	}
	text.WriteString(indent + "}\n")
	return text.String()
}

// quoted returns a string of HCL. The command takes only names that need no escapes.
func quoted(text string) string { return `"` + text + `"` }

func allQuoted(texts []string) (all []string) {
	for _, text := range texts {
		all = append(all, quoted(text))
	}
	return all
}
