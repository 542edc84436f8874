package command

import (
	"bytes"
	"cmp"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/millrace-dev/millrace/cmd/millrace/internal/infra"
	"github.com/millrace-dev/millrace/cmd/millrace/internal/output"
	"github.com/millrace-dev/millrace/internal/permissions"
	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/subscriber/dedup"
)

// schemaLine is a document as JSON.
type schemaLine struct {
	Kind     string `json:"kind"` // "schema"
	Format   string `json:"format"`
	Document string `json:"document"`
}

type schemaOptions struct {
	format, layout, billing string
	tables, roles           []string
	dedupTable, keysTable   string
	units                   infra.Capacity
	pointInTime, protection bool
	projected               []string
	where                   infra.Where
	lambda                  infra.Lambda
}

func (a *app) schema() *cobra.Command {
	var o schemaOptions
	cmd := &cobra.Command{
		Use:   "schema --format FORMAT [flags]",
		Short: "Print the tables for Terraform or CloudFormation, and policies for IAM",
		Long: `Print the tables of an application as a document: resources for Terraform, or a template for
CloudFormation. The tables are those that the command create and the packages make. With --format
iam print the policy of a role: the permissions that it needs, and no others. It needs no DynamoDB,
and no AWS configuration.

The document cannot create the descriptor of the journal, which stores the shard count. The first
lines of the document have the command that does, to be run once after the tables exist.

Roles:
` + rolesHelp() + `
` + tablesHelp,
		Example: "  millrace schema --format terraform --layout packed --prefix shop- > tables.tf\n" +
			"  millrace schema --format cloudformation --layout packed --tables journal,snapshot,checkpoint\n" +
			"  millrace schema --format terraform --layout packed --billing provisioned --read-units 20 --write-units 50\n" +
			"  millrace schema --format iam --role application --layout packed --prefix shop- --region eu-west-1 --account 123456789012",
		Args: wants(),
		RunE: a.does(func(cmd *cobra.Command, _ []string) error { return a.runSchema(cmd, o) }),
	}
	flags := cmd.Flags()
	flags.StringVar(&o.format, "format", "", "terraform, cloudformation or iam")
	flags.StringVar(&o.layout, "layout", "", "layout of the journal, which never changes: packed, for new applications, or classic")
	flags.StringSliceVar(&o.tables, "tables", []string{"journal", "snapshot", "checkpoint", "process", "readmodel"},
		"`kinds` of tables, separated by commas: also dedup and keys, or all")
	flags.StringVar(&o.dedupTable, "dedup-table", "", "`name` of the table of package dedup; default is the prefix and \""+dedup.DefaultTable+"\"")
	flags.StringVar(&o.keysTable, "keys-table", "", "`name` of the table of encryption keys; default is the prefix and \"keys\"")
	flags.StringVar(&o.billing, "billing", "on-demand", "on-demand or provisioned")
	flags.Int64Var(&o.units.Read, "read-units", 0, "provisioned read `units` of each table")
	flags.Int64Var(&o.units.Write, "write-units", 0, "provisioned write `units` of each table")
	flags.Int64Var(&o.units.IndexRead, "index-read-units", 0, "provisioned read `units` of each index; default is --read-units")
	flags.Int64Var(&o.units.IndexWrite, "index-write-units", 0, "provisioned write `units` of each index; default is --write-units")
	flags.BoolVar(&o.pointInTime, "point-in-time-recovery", true, "turn on point-in-time recovery")
	flags.BoolVar(&o.protection, "deletion-protection", true, "turn on deletion protection")
	flags.StringSliceVar(&o.roles, "role", nil, "`role` whose policy to print; Terraform and CloudFormation take several")
	flags.StringSliceVar(&o.projected, "projection-table", nil, "`name` of a table that projections write to, or the beginning of names and a *, for the policies; may be repeated")
	flags.StringVar(&o.lambda.Name, "lambda", "", "`name` of a Lambda function that works in bursts: prints it too, with its events, role and alarms")
	flags.StringSliceVar(&o.lambda.Topics, "lambda-topics", nil, "`topics` whose commits invoke the function, separated by commas; default is all")
	flags.StringVar(&o.where.Partition, "partition", "aws", "AWS partition in ARNs of policies: aws, aws-cn or aws-us-gov")
	flags.StringVar(&o.where.Account, "account", "*", "AWS account in ARNs of policies")
	return cmd
}

func rolesHelp() string {
	var text strings.Builder
	for _, role := range permissions.Roles {
		fmt.Fprintf(&text, "  %-16s %s\n", role.Name, role.Does)
	}
	return text.String()
}

const tablesHelp = `A policy has the tables that --tables selects. The region in its ARNs is --region, and any region
without it.`

func (a *app) runSchema(cmd *cobra.Command, o schemaOptions) error {
	if cmd.Flags().Changed("lambda") && o.lambda.Name == "" {
		return wrongUsage("--lambda is empty: want the name of a function")
	}
	o.where.Region = cmp.Or(a.target.Region, "*")
	document, err := o.document(a.tables)
	if err != nil {
		return err
	}
	var text bytes.Buffer
	switch o.format {
	case "terraform":
		err = document.WriteTerraform(&text)
	case "cloudformation":
		err = document.WriteCloudFormation(&text)
	case "iam":
		err = document.Access.WriteIAM(&text)
	}
	if err != nil {
		return err
	}
	if a.json {
		return output.NewEncoder(a.env.Out).Encode(schemaLine{"schema", o.format, text.String()})
	}
	_, err = cmd.OutOrStdout().Write(text.Bytes())
	return err
}

func (o schemaOptions) document(names tableNames) (infra.Document, error) {
	d := infra.Document{PointInTime: o.pointInTime, DeletionProtection: o.protection}
	if !slices.Contains([]string{"terraform", "cloudformation", "iam"}, o.format) {
		return d, wrongUsage("--format is %q: want terraform, cloudformation or iam", o.format)
	}
	selected, err := o.selected(names)
	if err != nil {
		return d, err
	}
	if err := o.validateNames(selected, names); err != nil {
		return d, err
	}
	capacity, err := o.capacity()
	if err != nil {
		return d, err
	}
	roles, err := o.rolesOf()
	if err != nil {
		return d, err
	}
	if o.layout == "" && (selected[permissions.Journal] != "" || selected[permissions.Snapshot] != "") {
		return d, wrongUsage("%s", missingLayout)
	}
	d.Tables, err = infra.Tables(cmp.Or(journal.Layout(o.layout), journal.Packed), selected, capacity)
	if err != nil {
		return d, wrongUsage("%v", err)
	}
	if selected[permissions.Journal] != "" {
		d.Command = names.createCommand(o.layout)
	}
	if err := o.validateProjected(roles); err != nil {
		return d, err
	}
	d.Access = infra.Access{Roles: roles, Layout: journal.Layout(o.layout), Names: selected, Projected: o.projected, Where: o.where}
	for _, role := range roles {
		if !d.Access.Uses(role) {
			return d, wrongUsage("the role %s uses none of the tables that --tables selects", role.Name)
		}
	}
	return d, o.addLambda(&d)
}

var (
	functionName  = regexp.MustCompile(`^[a-zA-Z0-9_-]{1,64}$`)
	filteredTopic = regexp.MustCompile(`^[a-zA-Z0-9_.:/-]+$`) // a pattern needs no escapes for it
)

// addLambda adds the function of --lambda to a document.
func (o schemaOptions) addLambda(d *infra.Document) error {
	f := o.lambda
	if f.Name == "" {
		if len(f.Topics) > 0 {
			return wrongUsage("--lambda-topics needs --lambda")
		}
		return nil
	}
	if !functionName.MatchString(f.Name) {
		return wrongUsage("--lambda is %q: want up to 64 letters, digits and _-", f.Name)
	}
	for _, topic := range f.Topics {
		if !filteredTopic.MatchString(topic) {
			return wrongUsage("--lambda-topics has %q: want letters, digits and _.:/-; without the flag, commits of all topics invoke the function", topic)
		}
	}
	if o.format == "iam" || d.Access.Names[permissions.Journal] == "" {
		return wrongUsage("--lambda needs --format terraform or cloudformation, and the table journal")
	}
	if !d.SetLambda(f) {
		return wrongUsage("--lambda-topics has too many topics for the filter of a stream; without the flag, commits of all topics invoke the function")
	}
	return nil
}

// selected returns the names of the tables that --tables selects.
func (o schemaOptions) selected(names tableNames) (infra.Names, error) {
	all := infra.Names{
		permissions.Journal: names.Journal, permissions.Snapshot: names.newSnapshot(), permissions.Checkpoint: names.Checkpoint,
		permissions.Process: names.process, permissions.ReadModel: names.model,
		permissions.Dedup: cmp.Or(o.dedupTable, names.prefix+dedup.DefaultTable), permissions.Keys: cmp.Or(o.keysTable, names.prefix+"keys"),
	}
	if slices.Equal(o.tables, []string{"all"}) {
		return all, nil
	}
	selected := infra.Names{}
	for _, kind := range o.tables {
		name, known := all[permissions.Resource(kind)]
		if !known {
			return nil, wrongUsage("--tables has %q: want %s, or all", kind, kindsText())
		}
		selected[permissions.Resource(kind)] = name
	}
	if len(selected) == 0 {
		return nil, wrongUsage("--tables is empty: want %s, or all", kindsText())
	}
	return selected, nil
}

// Names of tables, the prefix of names, and the parts of an ARN. Neither a format nor a shell needs
// an escape for them.
var (
	tableName   = regexp.MustCompile(`^[a-zA-Z0-9_.-]{3,255}$`)
	tablePrefix = regexp.MustCompile(`^[a-zA-Z0-9_.-]*$`)
	// projectedName is a name, or the beginning of names with a * after it.
	projectedName = regexp.MustCompile(`^[a-zA-Z0-9_.-]{3,255}\*?$`)
	arnPart       = regexp.MustCompile(`^([a-z0-9-]+|\*)$`)
)

// validateNames validates the names of the document, and those of the command in its first lines.
func (o schemaOptions) validateNames(selected infra.Names, names tableNames) error {
	used := map[string]bool{}
	tables := slices.Sorted(maps.Values(selected))
	for i, name := range append(tables, o.projected...) {
		switch {
		case i < len(tables) && !tableName.MatchString(name):
			return wrongTableName(name)
		case !projectedName.MatchString(name):
			return wrongUsage("--projection-table is %q: want 3 to 255 letters, digits and _.-, and at most a * at the end", name)
		}
		if used[name] {
			return wrongUsage("two tables have the name %q", name)
		}
		used[name] = true
	}
	if !tablePrefix.MatchString(names.prefix) {
		return wrongUsage("--prefix is %q: want letters, digits and _.-", names.prefix)
	}
	for _, name := range []string{names.Journal, names.newSnapshot(), names.Checkpoint} {
		if !tableName.MatchString(name) {
			return wrongTableName(name)
		}
	}
	for flag, part := range map[string]string{"partition": o.where.Partition, "region": o.where.Region, "account": o.where.Account} {
		if !arnPart.MatchString(part) {
			return wrongUsage("--%s is %q: want lower-case letters, digits and dashes, or *", flag, part)
		}
	}
	return nil
}

func wrongTableName(name string) error {
	return wrongUsage("the table name %q is not a name of 3 to 255 letters, digits and _.-", name)
}

// validateProjected returns an error if no role uses the tables of projections.
func (o schemaOptions) validateProjected(roles []permissions.Role) error {
	if len(o.projected) == 0 {
		return nil
	}
	uses := func(role permissions.Role) bool {
		return len(role.Of(journal.Layout(o.layout))[permissions.Projected]) > 0
	}
	if slices.ContainsFunc(roles, uses) {
		return nil
	}
	var names []string
	for _, role := range permissions.Roles {
		if uses(role) {
			names = append(names, role.Name)
		}
	}
	return wrongUsage("--projection-table needs a --role that uses tables of projections: %s", strings.Join(names, ", "))
}

func kindsText() string {
	var kinds []string
	for _, kind := range infra.Kinds {
		kinds = append(kinds, string(kind))
	}
	return strings.Join(kinds, ", ")
}

func (o schemaOptions) capacity() (*infra.Capacity, error) {
	c := o.units
	switch o.billing {
	case "on-demand":
		if c != (infra.Capacity{}) {
			return nil, wrongUsage("--read-units, --write-units and those of indexes go with --billing provisioned")
		}
		return nil, nil
	case "provisioned":
		if c.Read < 1 || c.Write < 1 || c.IndexRead < 0 || c.IndexWrite < 0 {
			return nil, wrongUsage("--billing provisioned needs --read-units and --write-units, each 1 or more")
		}
		c.IndexRead, c.IndexWrite = cmp.Or(c.IndexRead, c.Read), cmp.Or(c.IndexWrite, c.Write)
		return &c, nil
	}
	return nil, wrongUsage("--billing is %q: want on-demand or provisioned", o.billing)
}

func (o schemaOptions) rolesOf() (roles []permissions.Role, err error) {
	var names []string
	for _, role := range permissions.Roles {
		names = append(names, role.Name)
	}
	if o.format == "iam" && len(o.roles) != 1 {
		return nil, wrongUsage("--format iam needs one --role: %s", strings.Join(names, ", "))
	}
	selected := o.roles
	if o.lambda.Name != "" && !slices.Contains(selected, "application") {
		selected = append([]string{"application"}, selected...)
	}
	for i, name := range selected {
		role, known := permissions.RoleOf(name)
		if !known {
			return nil, wrongUsage("--role is %q: want %s", name, strings.Join(names, ", "))
		}
		if slices.Contains(selected[:i], name) {
			return nil, wrongUsage("--role has %q twice", name)
		}
		roles = append(roles, role)
	}
	return roles, nil
}

// createCommand returns the command that creates the descriptor in these tables.
func (n *tableNames) createCommand(layout string) string {
	line := fmt.Sprintf("millrace create --layout %s --shards %d", layout, defaultShards)
	if n.prefix != "" {
		line += " --prefix " + n.prefix
	}
	for _, table := range []struct{ flag, name, byDefault string }{
		{"--journal-table", n.Journal, "journal"}, {"--snapshot-table", n.newSnapshot(), "snapshot"}, {"--checkpoint-table", n.Checkpoint, "checkpoint"},
	} {
		if table.name != n.prefix+table.byDefault {
			line += " " + table.flag + " " + table.name
		}
	}
	return line
}
