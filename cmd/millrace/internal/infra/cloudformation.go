package infra

import (
	"io"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"go.yaml.in/yaml/v3"

	"github.com/millrace-dev/millrace/internal/permissions"
)

// WriteCloudFormation writes a template in YAML. Its tables stay when the stack is deleted.
func (d Document) WriteCloudFormation(w io.Writer) error {
	if err := d.comment(w); err != nil {
		return err
	}
	template := yaml.Node{Kind: yaml.MappingNode}
	resources := &yaml.Node{Kind: yaml.MappingNode}
	if err := put(&template, "AWSTemplateFormatVersion", "2010-09-09"); err != nil {
		return err
	}
	before := "" // the last table with indexes: DynamoDB may refuse to create several at a time
	for _, table := range d.Tables {
		r := d.template(table)
		if len(table.Input.GlobalSecondaryIndexes) > 0 {
			r.DependsOn, before = before, logicalID(table.Kind)
		}
		if err := put(resources, logicalID(table.Kind), r); err != nil {
			return err
		}
	}
	for _, role := range d.Access.Roles {
		if err := put(resources, camel(role.Name)+"Policy", d.managedPolicy(role)); err != nil {
			return err
		}
	}
	for _, e := range d.lambdaTemplate() {
		if err := put(resources, e.key, e.value); err != nil {
			return err
		}
	}
	for _, e := range d.lambdaParameters() {
		if err := put(&template, e.key, e.value); err != nil {
			return err
		}
	}
	template.Content = append(template.Content, &yaml.Node{Kind: yaml.ScalarNode, Value: "Resources"}, resources)
	encoder := yaml.NewEncoder(w)
	encoder.SetIndent(2)
	if err := encoder.Encode(&template); err != nil {
		return err
	}
	return encoder.Close()
}

// put adds an entry to a mapping, whose order stays.
func put(mapping *yaml.Node, key string, value any) error {
	node := &yaml.Node{}
	if err := node.Encode(value); err != nil {
		return err
	}
	mapping.Content = append(mapping.Content, &yaml.Node{Kind: yaml.ScalarNode, Value: key}, node)
	return nil
}

func logicalID(kind permissions.Resource) string { return camel(string(kind)) + "Table" }

// The resource types, as templates have them.
type (
	cfnResource struct {
		Type                string `yaml:"Type"`
		DependsOn           string `yaml:"DependsOn,omitempty"`
		DeletionPolicy      string `yaml:"DeletionPolicy,omitempty"`
		UpdateReplacePolicy string `yaml:"UpdateReplacePolicy,omitempty"`
		Properties          any    `yaml:"Properties"`
	}
	cfnTable struct {
		TableName                        string         `yaml:"TableName"`
		BillingMode                      string         `yaml:"BillingMode"`
		ProvisionedThroughput            *cfnThroughput `yaml:"ProvisionedThroughput,omitempty"`
		AttributeDefinitions             []cfnAttribute `yaml:"AttributeDefinitions"`
		KeySchema                        []cfnKey       `yaml:"KeySchema"`
		GlobalSecondaryIndexes           []cfnIndex     `yaml:"GlobalSecondaryIndexes,omitempty"`
		TimeToLiveSpecification          *cfnExpiry     `yaml:"TimeToLiveSpecification,omitempty"`
		PointInTimeRecoverySpecification cfnRecovery    `yaml:"PointInTimeRecoverySpecification"`
		DeletionProtectionEnabled        bool           `yaml:"DeletionProtectionEnabled"`
		StreamSpecification              *cfnStream     `yaml:"StreamSpecification,omitempty"`
	}
	cfnAttribute struct {
		AttributeName string `yaml:"AttributeName"`
		AttributeType string `yaml:"AttributeType"`
	}
	cfnKey struct {
		AttributeName string `yaml:"AttributeName"`
		KeyType       string `yaml:"KeyType"`
	}
	cfnIndex struct {
		IndexName             string         `yaml:"IndexName"`
		KeySchema             []cfnKey       `yaml:"KeySchema"`
		Projection            cfnProjection  `yaml:"Projection"`
		ProvisionedThroughput *cfnThroughput `yaml:"ProvisionedThroughput,omitempty"`
	}
	cfnProjection struct {
		ProjectionType   string   `yaml:"ProjectionType"`
		NonKeyAttributes []string `yaml:"NonKeyAttributes,omitempty"`
	}
	cfnThroughput struct {
		ReadCapacityUnits  int64 `yaml:"ReadCapacityUnits"`
		WriteCapacityUnits int64 `yaml:"WriteCapacityUnits"`
	}
	cfnExpiry struct {
		AttributeName string `yaml:"AttributeName"`
		Enabled       bool   `yaml:"Enabled"`
	}
	cfnRecovery struct {
		PointInTimeRecoveryEnabled bool `yaml:"PointInTimeRecoveryEnabled"`
	}
	cfnStream struct {
		StreamViewType string `yaml:"StreamViewType"`
	}
	cfnPolicy struct {
		PolicyDocument Policy `yaml:"PolicyDocument"`
	}
)

func (d Document) template(table Table) cfnResource {
	in := table.Input
	t := cfnTable{
		TableName: *in.TableName, BillingMode: string(in.BillingMode), ProvisionedThroughput: throughput(in.ProvisionedThroughput),
		KeySchema: keySchema(in.KeySchema), PointInTimeRecoverySpecification: cfnRecovery{d.PointInTime}, DeletionProtectionEnabled: d.DeletionProtection,
	}
	for _, a := range in.AttributeDefinitions {
		t.AttributeDefinitions = append(t.AttributeDefinitions, cfnAttribute{*a.AttributeName, string(a.AttributeType)})
	}
	for _, x := range in.GlobalSecondaryIndexes {
		t.GlobalSecondaryIndexes = append(t.GlobalSecondaryIndexes, cfnIndex{
			IndexName: *x.IndexName, KeySchema: keySchema(x.KeySchema), ProvisionedThroughput: throughput(x.ProvisionedThroughput),
			Projection: cfnProjection{string(x.Projection.ProjectionType), x.Projection.NonKeyAttributes},
		})
	}
	if table.TimeToLive != "" {
		t.TimeToLiveSpecification = &cfnExpiry{table.TimeToLive, true}
	}
	if in.StreamSpecification != nil {
		t.StreamSpecification = &cfnStream{string(in.StreamSpecification.StreamViewType)}
	}
	return cfnResource{Type: "AWS::DynamoDB::Table", DeletionPolicy: "Retain", UpdateReplacePolicy: "Retain", Properties: t}
}

func keySchema(schema []types.KeySchemaElement) (all []cfnKey) {
	for _, key := range schema {
		all = append(all, cfnKey{*key.AttributeName, string(key.KeyType)})
	}
	return all
}

func throughput(units *types.ProvisionedThroughput) *cfnThroughput {
	if units == nil {
		return nil
	}
	return &cfnThroughput{*units.ReadCapacityUnits, *units.WriteCapacityUnits}
}

// managedPolicy refers to the tables of the same template.
func (d Document) managedPolicy(role permissions.Role) cfnResource {
	return cfnResource{Type: "AWS::IAM::ManagedPolicy", Properties: cfnPolicy{Policy{policyVersion, d.Access.statements(role,
		func(kind permissions.Resource, indexes bool) any {
			if indexes {
				return map[string]string{"Fn::Sub": "${" + logicalID(kind) + ".Arn}/index/*"}
			}
			return map[string][]string{"Fn::GetAtt": {logicalID(kind), "Arn"}}
		})}}}
}
