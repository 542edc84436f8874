package command_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/gohcl"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/hashicorp/hcl/v2/hclwrite"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"

	"github.com/millrace-dev/millrace/cmd/millrace/internal/command"
	"github.com/millrace-dev/millrace/internal/testdb"
	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/journal/encrypt"
	"github.com/millrace-dev/millrace/process"
	"github.com/millrace-dev/millrace/projection/readmodel"
	"github.com/millrace-dev/millrace/subscriber"
	"github.com/millrace-dev/millrace/subscriber/dedup"
)

// declared is a table of a document.
type declared struct {
	dynamodb.CreateTableInput
	TimeToLiveSpecification          *types.TimeToLiveSpecification
	PointInTimeRecoverySpecification types.PointInTimeRecoverySpecification
}

// documents holds the function that parses the tables of a document, by its format.
var documents = map[string]func(t *testing.T, document string) []declared{"terraform": fromTerraform, "cloudformation": fromCloudFormation}

func TestTheTablesOfADocumentAreThoseThatCreateMakes(t *testing.T) {
	t.Parallel()
	for format, read := range documents {
		for _, layout := range []journal.Layout{journal.Classic, journal.Packed} {
			t.Run(format+" "+string(layout), func(t *testing.T) {
				t.Parallel()
				s := setup(t)
				s.deploy(t, read(t, s.ok(t, "schema", "--format", format, "--layout", string(layout), "--prefix", "shop-", "--tables", "all")))

				own := testdb.Client(t)
				createAll(t, own, layout)
				assert.Equal(t, tablesOf(t, own), tablesOf(t, s.client))
			})
		}
	}
}

// createAll makes all tables as the packages make them.
func createAll(t *testing.T, client journal.Client, layout journal.Layout) {
	t.Helper()
	require.NoError(t, journal.Create(t.Context(), client, journal.Config{
		Layout: layout, Shards: 4, Tables: journal.Tables{Journal: "shop-journal", Snapshot: "shop-snapshot", Checkpoint: "shop-checkpoint"},
	}))
	require.NoError(t, process.CreateTable(t.Context(), client, "shop-process"))
	require.NoError(t, readmodel.CreateTable(t.Context(), client, "shop-readmodel"))
	require.NoError(t, dedup.CreateTable(t.Context(), client, dedup.TableConfig{Name: "shop-dedup"}))
	require.NoError(t, encrypt.CreateTable(t.Context(), client, encrypt.KeysConfig{Table: "shop-keys"}))
}

func TestTheCommandOfADocumentCompletesTheJournal(t *testing.T) {
	t.Parallel()
	for format, read := range documents {
		for _, layout := range []journal.Layout{journal.Classic, journal.Packed} {
			for _, billing := range []string{"on-demand", "provisioned --read-units 50 --write-units 60 --index-write-units 70"} {
				t.Run(format+" "+string(layout)+" "+billing, func(t *testing.T) {
					t.Parallel()
					s := setup(t)
					args := fmt.Sprintf("schema --format %s --layout %s --prefix shop- --snapshot-table states --billing %s", format, layout, billing)
					document := s.ok(t, strings.Fields(args)...)
					s.deploy(t, read(t, document))
					config := journal.Config{Layout: layout, Tables: journal.Tables{Journal: "shop-journal", Snapshot: "states", Checkpoint: "shop-checkpoint"}}
					_, err := journal.Open(t.Context(), s.client, config)
					require.ErrorIs(t, err, journal.ErrNoDescriptor)
					before := tablesOf(t, s.client)

					s.ok(t, commandIn(t, document)...)
					assert.Equal(t, before, tablesOf(t, s.client), "the tables stay as they are")
					j := s.open(t, config)
					assert.Equal(t, 16, j.Shards())
					deposits(t, j, account("1"), 1, 1)
					assert.JSONEq(t, `{"Amount": 1}`, consumed(t, j))
				})
			}
		}
	}
}

func TestCreateOfThePackageCompletesTheJournal(t *testing.T) {
	t.Parallel()
	s := setup(t)
	s.deploy(t, fromTerraform(t, s.ok(t, "schema", "--format", "terraform", "--layout", "packed")))
	config := journal.Config{Layout: journal.Packed, Shards: 2}
	require.NoError(t, journal.Create(t.Context(), s.client, config))
	j := s.open(t, config)
	deposits(t, j, account("1"), 1, 1)
	assert.JSONEq(t, `{"Amount": 1}`, consumed(t, j))
}

func TestTheWrongLayoutIsRefusedAfterwards(t *testing.T) {
	t.Parallel()
	s := setup(t)
	s.deploy(t, fromTerraform(t, s.ok(t, "schema", "--format", "terraform", "--layout", "packed")))
	o := s.run(t, "create", "--layout", "classic")
	assert.Equal(t, command.ExitFailure, o.code)
	assert.Contains(t, o.err, "keys")
}

func TestDocumentsProtectTheTables(t *testing.T) {
	t.Parallel()
	s := setup(t)
	for format, read := range documents {
		for _, on := range []bool{true, false} {
			args := []string{"schema", "--format", format, "--layout", "classic", "--tables", "all"}
			if !on {
				args = append(args, "--point-in-time-recovery=false", "--deletion-protection=false")
			}
			tables := read(t, s.ok(t, args...))
			require.Len(t, tables, 7)
			for _, table := range tables {
				assert.Equal(t, on, *table.PointInTimeRecoverySpecification.PointInTimeRecoveryEnabled, "%s of %s", *table.TableName, format)
				assert.Equal(t, on, *table.DeletionProtectionEnabled, "%s of %s", *table.TableName, format)
			}
		}
	}
}

func TestAProvisionedDocumentHasTheUnitsOfTheFlags(t *testing.T) {
	t.Parallel()
	s := setup(t)
	for format, read := range documents {
		line := "schema --layout classic --billing provisioned --read-units 5 --write-units 6 --index-read-units 7 --format " + format
		for _, table := range read(t, s.ok(t, strings.Fields(line)...)) {
			assert.Equal(t, types.BillingModeProvisioned, table.BillingMode)
			assert.Equal(t, [2]int64{5, 6}, unitsOf(table.ProvisionedThroughput))
			for _, index := range table.GlobalSecondaryIndexes {
				assert.Equal(t, [2]int64{7, 6}, unitsOf(index.ProvisionedThroughput), "writes of an index by default as those of the table")
			}
		}
	}
}

func unitsOf(p *types.ProvisionedThroughput) [2]int64 {
	return [2]int64{*p.ReadCapacityUnits, *p.WriteCapacityUnits}
}

func TestTerraformHasTheCanonicalFormat(t *testing.T) {
	t.Parallel()
	s := setup(t)
	for _, line := range []string{
		"--layout packed", "--layout classic --billing provisioned --read-units 5 --write-units 6",
		"--layout packed --tables all --role application --role deploy --projection-table balances --projection-table list",
	} {
		document := s.ok(t, append([]string{"schema", "--format", "terraform"}, strings.Fields(line)...)...)
		assert.Equal(t, string(hclwrite.Format([]byte(document))), document)
	}
}

func TestCloudFormationCreatesTablesWithIndexesOneByOne(t *testing.T) {
	t.Parallel()
	s := setup(t)
	template := templateOf(t, s.ok(t, "schema", "--format", "cloudformation", "--layout", "classic"))
	depends := map[string]string{}
	for id, resource := range template.Resources {
		assert.Equal(t, "Retain", resource.DeletionPolicy)
		assert.Equal(t, "Retain", resource.UpdateReplacePolicy)
		depends[id] = resource.DependsOn
	}
	assert.Equal(t, map[string]string{
		"JournalTable": "", "SnapshotTable": "JournalTable", "CheckpointTable": "", "ProcessTable": "SnapshotTable", "ReadmodelTable": "",
	}, depends)
}

func TestADocumentWithoutAJournalNeedsNoDescriptor(t *testing.T) {
	t.Parallel()
	s := setup(t)
	for format := range documents {
		out := s.ok(t, "schema", "--format", format, "--tables", "dedup,keys", "--dedup-table", "seen", "--keys-table", "secrets")
		assert.NotContains(t, out, "millrace create")
		assert.Contains(t, out, "seen")
		assert.Contains(t, out, "secrets")
	}
}

func TestADocumentIsAnObject(t *testing.T) {
	t.Parallel()
	s := setup(t)
	printed := lines(t, s.ok(t, "schema", "--format", "terraform", "--layout", "packed", "--json"))
	assert.Equal(t, s.ok(t, "schema", "--format", "terraform", "--layout", "packed"), printed[0]["document"])
}

// commandIn returns the arguments of the command that the comment of a document names.
func commandIn(t *testing.T, document string) []string {
	t.Helper()
	for line := range strings.Lines(document) {
		if _, args, found := strings.Cut(line, "millrace create "); found {
			return append([]string{"create"}, strings.Fields(args)...)
		}
	}
	require.Fail(t, "the document must name the command")
	return nil
}

// consumed returns the payload of the first message of a group.
func consumed(t *testing.T, j *journal.Journal) string {
	t.Helper()
	sub, err := subscriber.NewSubscriber(subscriber.Config{Journal: j, ConsumerGroup: "readers"}, nil)
	require.NoError(t, err)
	defer func() { require.NoError(t, sub.Close()) }()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	messages, err := sub.Subscribe(ctx, "account")
	require.NoError(t, err)
	var msg *message.Message
	select {
	case msg = <-messages:
	case <-time.After(patience):
	}
	require.NotNil(t, msg)
	msg.Ack()
	return string(msg.Payload)
}

// deploy creates tables as Terraform or CloudFormation do.
func (s *shell) deploy(t *testing.T, tables []declared) {
	t.Helper()
	for _, table := range tables {
		_, err := s.client.CreateTable(t.Context(), &table.CreateTableInput)
		require.NoError(t, err)
		if expiry := table.TimeToLiveSpecification; expiry != nil {
			_, err := s.client.UpdateTimeToLive(t.Context(), &dynamodb.UpdateTimeToLiveInput{TableName: table.TableName, TimeToLiveSpecification: expiry})
			require.NoError(t, err)
		}
	}
}

// tablesOf returns the descriptions of all tables, without the parts that change over time.
func tablesOf(t *testing.T, client *dynamodb.Client) map[string]any {
	t.Helper()
	found := map[string]any{}
	list, err := client.ListTables(t.Context(), &dynamodb.ListTablesInput{})
	require.NoError(t, err)
	for _, name := range list.TableNames {
		described, err := client.DescribeTable(t.Context(), &dynamodb.DescribeTableInput{TableName: &name})
		require.NoError(t, err)
		expiry, err := client.DescribeTimeToLive(t.Context(), &dynamodb.DescribeTimeToLiveInput{TableName: &name})
		require.NoError(t, err)
		table := described.Table
		indexes := map[string]any{}
		for _, index := range table.GlobalSecondaryIndexes {
			slices.Sort(index.Projection.NonKeyAttributes)
			indexes[*index.IndexName] = []any{index.KeySchema, *index.Projection, units(index.ProvisionedThroughput)}
		}
		slices.SortFunc(table.AttributeDefinitions, func(a, b types.AttributeDefinition) int { return strings.Compare(*a.AttributeName, *b.AttributeName) })
		found[name] = map[string]any{
			"attributes": table.AttributeDefinitions, "keys": table.KeySchema, "indexes": indexes, "units": units(table.ProvisionedThroughput),
			"time to live": aws.ToString(expiry.TimeToLiveDescription.AttributeName),
		}
	}
	return found
}

func units(p *types.ProvisionedThroughputDescription) [2]int64 {
	if p == nil {
		return [2]int64{}
	}
	return [2]int64{aws.ToInt64(p.ReadCapacityUnits), aws.ToInt64(p.WriteCapacityUnits)}
}

// template is a CloudFormation template. Its properties have the names of those of CreateTable.
type template struct {
	AWSTemplateFormatVersion string
	Parameters, Conditions   json.RawMessage
	Resources                map[string]struct {
		Type, DependsOn, DeletionPolicy, UpdateReplacePolicy string
		Properties                                           json.RawMessage
	}
}

func templateOf(t *testing.T, document string) (parsed template) {
	t.Helper()
	var raw any
	require.NoError(t, yaml.Unmarshal([]byte(document), &raw))
	text, err := json.Marshal(raw)
	require.NoError(t, err)
	strictly(t, text, &parsed)
	require.Equal(t, "2010-09-09", parsed.AWSTemplateFormatVersion)
	return parsed
}

// strictly decodes JSON, and fails the test if the JSON has unknown fields.
func strictly(t *testing.T, text []byte, into any) {
	t.Helper()
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.DisallowUnknownFields()
	require.NoError(t, decoder.Decode(into), "%s", text)
}

func fromCloudFormation(t *testing.T, document string) (tables []declared) {
	t.Helper()
	resources := templateOf(t, document).Resources
	for _, id := range slices.Sorted(maps.Keys(resources)) {
		require.Equal(t, "AWS::DynamoDB::Table", resources[id].Type)
		var table declared
		strictly(t, resources[id].Properties, &table)
		tables = append(tables, table)
	}
	return tables
}

// The blocks of Terraform, by the names of the provider. Other blocks and attributes are errors.
type (
	tfFile struct {
		Tables []tfTable `hcl:"resource,block"`
	}
	tfTable struct {
		Type       string        `hcl:"type,label"`
		Label      string        `hcl:"label,label"`
		Name       string        `hcl:"name"`
		Billing    string        `hcl:"billing_mode"`
		Hash       string        `hcl:"hash_key"`
		Range      *string       `hcl:"range_key"`
		Read       *int64        `hcl:"read_capacity"`
		Write      *int64        `hcl:"write_capacity"`
		Protection bool          `hcl:"deletion_protection_enabled"`
		Attributes []tfAttribute `hcl:"attribute,block"`
		Indexes    []tfIndex     `hcl:"global_secondary_index,block"`
		TimeToLive *tfExpiry     `hcl:"ttl,block"`
		Recovery   tfRecovery    `hcl:"point_in_time_recovery,block"`
	}
	tfAttribute struct {
		Name string `hcl:"name"`
		Type string `hcl:"type"`
	}
	tfIndex struct {
		Name       string   `hcl:"name"`
		Hash       string   `hcl:"hash_key"`
		Range      *string  `hcl:"range_key"`
		Projection string   `hcl:"projection_type"`
		NonKey     []string `hcl:"non_key_attributes,optional"`
		Read       *int64   `hcl:"read_capacity"`
		Write      *int64   `hcl:"write_capacity"`
	}
	tfExpiry struct {
		Attribute string `hcl:"attribute_name"`
		Enabled   bool   `hcl:"enabled"`
	}
	tfRecovery struct {
		Enabled bool `hcl:"enabled"`
	}
)

func fromTerraform(t *testing.T, document string) (tables []declared) {
	t.Helper()
	file, problems := hclsyntax.ParseConfig([]byte(document), "tables.tf", hcl.InitialPos)
	require.False(t, problems.HasErrors(), "%v", problems)
	var parsed tfFile
	problems = gohcl.DecodeBody(file.Body, nil, &parsed)
	require.False(t, problems.HasErrors(), "%v", problems)
	for _, table := range parsed.Tables {
		require.Equal(t, "aws_dynamodb_table", table.Type)
		in := declared{CreateTableInput: dynamodb.CreateTableInput{
			TableName: &table.Name, BillingMode: types.BillingMode(table.Billing), KeySchema: schemaOf(table.Hash, table.Range),
			ProvisionedThroughput: throughputOf(table.Read, table.Write), DeletionProtectionEnabled: &table.Protection,
		}}
		for _, a := range table.Attributes {
			in.AttributeDefinitions = append(in.AttributeDefinitions, types.AttributeDefinition{AttributeName: &a.Name, AttributeType: types.ScalarAttributeType(a.Type)})
		}
		for _, x := range table.Indexes {
			in.GlobalSecondaryIndexes = append(in.GlobalSecondaryIndexes, types.GlobalSecondaryIndex{
				IndexName: &x.Name, KeySchema: schemaOf(x.Hash, x.Range), ProvisionedThroughput: throughputOf(x.Read, x.Write),
				Projection: &types.Projection{ProjectionType: types.ProjectionType(x.Projection), NonKeyAttributes: x.NonKey},
			})
		}
		if table.TimeToLive != nil {
			in.TimeToLiveSpecification = &types.TimeToLiveSpecification{AttributeName: &table.TimeToLive.Attribute, Enabled: &table.TimeToLive.Enabled}
		}
		in.PointInTimeRecoverySpecification.PointInTimeRecoveryEnabled = &table.Recovery.Enabled
		tables = append(tables, in)
	}
	return tables
}

func schemaOf(hash string, sort *string) []types.KeySchemaElement {
	schema := []types.KeySchemaElement{{AttributeName: &hash, KeyType: types.KeyTypeHash}}
	if sort != nil {
		schema = append(schema, types.KeySchemaElement{AttributeName: sort, KeyType: types.KeyTypeRange})
	}
	return schema
}

func throughputOf(read, write *int64) *types.ProvisionedThroughput {
	if read == nil {
		return nil
	}
	return &types.ProvisionedThroughput{ReadCapacityUnits: read, WriteCapacityUnits: write}
}
