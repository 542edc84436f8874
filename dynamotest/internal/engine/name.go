package engine

import (
	"strings"

	"github.com/millrace-dev/millrace/dynamotest/internal/apierror"
)

// Lengths of the names of tables and indexes. Names of key and projected attributes have the same
// maximum. Source: Developer Guide, "Quotas in Amazon DynamoDB", naming rules.
const (
	minName = 3
	maxName = 255
)

const namePattern = "[a-zA-Z0-9_.-]+"

// All tables are in one region of one account.
const (
	region  = "us-east-1"
	account = "000000000000"

	tablePrefix = "arn:aws:dynamodb:" + region + ":" + account + ":table/"
)

// checkTableName requires the name or the ARN of a table.
func checkTableName(name *string) error {
	if name == nil {
		return apierror.Validation("The parameter 'TableName' is required but was not present in the request")
	}
	given := *name
	if isARN(given) {
		bare, ok := inTableARN(given)
		if !ok || !isName(bare) {
			return apierror.Validation("1 validation error detected: Value '%s' at 'tableName' failed to satisfy constraint: "+
				"Member must be the name of a table or the ARN of one", given)
		}
		return nil
	}
	if len(given) < minName || len(given) > maxName {
		return apierror.Validation("TableName must be at least %d characters long and at most %d characters long", minName, maxName)
	}
	if !consistsOfNameCharacters(given) {
		return apierror.Validation("1 validation error detected: Value '%s' at 'tableName' failed to satisfy constraint: "+
			"Member must satisfy regular expression pattern: %s", given, namePattern)
	}
	return nil
}

// tableName returns the name in the ARN of a table, or the name itself.
func tableName(nameOrARN string) string {
	if bare, ok := inTableARN(nameOrARN); ok {
		return bare
	}
	return nameOrARN
}

// A name has no colon, so an ARN is never a valid name.
func isARN(s string) bool { return strings.HasPrefix(s, "arn:") }

// inTableARN returns the name in arn:PARTITION:dynamodb:REGION:ACCOUNT:table/NAME. It accepts any
// region and account, because the tested code uses its own settings.
func inTableARN(arn string) (name string, ok bool) {
	rest, ok := strings.CutPrefix(arn, "arn:")
	if !ok {
		return "", false
	}
	_, rest, _ = strings.Cut(rest, ":") // partition
	service, rest, _ := strings.Cut(rest, ":")
	_, rest, _ = strings.Cut(rest, ":") // region
	_, resource, _ := strings.Cut(rest, ":")
	name, ok = strings.CutPrefix(resource, "table/")
	return name, ok && service == "dynamodb"
}

func isName(s string) bool {
	return len(s) >= minName && len(s) <= maxName && consistsOfNameCharacters(s)
}

func consistsOfNameCharacters(s string) bool {
	for i := range len(s) {
		c := s[i]
		switch {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', c == '_', c == '.', c == '-':
		default:
			return false
		}
	}
	return s != ""
}

func tableARN(table string) string { return tablePrefix + table }

func indexARN(table, index string) string { return tablePrefix + table + "/index/" + index }
