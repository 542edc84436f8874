package infra

import (
	"encoding/json"
	"io"
	"slices"
	"strings"

	"github.com/millrace-dev/millrace/internal/permissions"
	"github.com/millrace-dev/millrace/journal"
)

// Where says in which part of AWS the tables of a policy are.
type Where struct{ Partition, Region, Account string }

func (w Where) arn(table string) string {
	return "arn:" + w.Partition + ":dynamodb:" + w.Region + ":" + w.Account + ":table/" + table
}

// Policy is a policy document of IAM.
type Policy struct {
	Version   string      `yaml:"Version"`
	Statement []Statement `yaml:"Statement"`
}

// Statement allows actions on resources. In a template a resource is not text, but a function that
// returns the ARN.
type Statement struct {
	Sid      string   `yaml:"Sid"`
	Effect   string   `yaml:"Effect"`
	Action   []string `yaml:"Action"`
	Resource any      `yaml:"Resource"`
}

// Access is what the policies of a document are about: roles, and the tables that they use.
type Access struct {
	Roles  []permissions.Role
	Layout journal.Layout
	Names  Names
	// Projected are the names of the tables that projections write to.
	Projected []string
	Where     Where
}

// statements returns the statements of a role for the tables that have names. resource returns the
// resource of a statement: the ARN of a table, or of all its indexes.
func (a Access) statements(role permissions.Role, resource func(kind permissions.Resource, indexes bool) any) (all []Statement) {
	needs := role.Of(a.Layout)
	allow := func(r permissions.Resource, resource any) {
		actions := slices.Clone(needs[r])
		for i := range actions {
			actions[i] = "dynamodb:" + actions[i]
		}
		all = append(all, Statement{Sid: camel(string(r)), Effect: "Allow", Action: actions, Resource: resource})
	}
	for _, kind := range Kinds {
		for _, r := range []permissions.Resource{kind, kind + "/index"} {
			if len(needs[r]) > 0 && a.Names[kind] != "" {
				allow(r, resource(kind, r != kind))
			}
		}
	}
	for _, r := range []permissions.Resource{permissions.Projected, permissions.ProjectedIndex} {
		if len(needs[r]) == 0 || len(a.Projected) == 0 {
			continue
		}
		var arns []string
		for _, name := range a.Projected {
			arn := a.Where.arn(name)
			if r == permissions.ProjectedIndex {
				arn += "/index/*"
			}
			arns = append(arns, arn)
		}
		allow(r, arns)
	}
	return all
}

// Uses reports whether a role needs any of the tables.
func (a Access) Uses(role permissions.Role) bool {
	return len(a.statements(role, func(permissions.Resource, bool) any { return "" })) > 0
}

// camel makes "JournalIndex" of "journal/index", and "ProcessManager" of "process-manager".
func camel(text string) string {
	var joined strings.Builder
	for _, word := range strings.FieldsFunc(text, func(r rune) bool { return r == '/' || r == '-' }) {
		joined.WriteString(strings.ToUpper(word[:1]) + word[1:])
	}
	return joined.String()
}

// WriteIAM writes the policy of the first role as JSON.
func (a Access) WriteIAM(w io.Writer) error {
	encoder := json.NewEncoder(w)
	encoder.SetIndent("", "  ")
	return encoder.Encode(Policy{policyVersion, a.statements(a.Roles[0], func(kind permissions.Resource, indexes bool) any {
		if indexes {
			return a.Where.arn(a.Names[kind]) + "/index/*"
		}
		return a.Where.arn(a.Names[kind])
	})})
}

// policyVersion is the version of the language of policies.
const policyVersion = "2012-10-17"
