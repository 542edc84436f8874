package engine

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/millrace-dev/millrace/dynamotest/internal/apierror"
)

// constraints collects violations of the API's model in a request: missing values, values that are
// too long, values that are not in a set. DynamoDB checks these before the meaning of the request,
// and reports up to ten violations at once.
type constraints struct {
	broken []string
}

const maxReported = 10

func (c *constraints) err() error {
	switch n := min(len(c.broken), maxReported); n {
	case 0:
		return nil
	case 1:
		return apierror.Validation("1 validation error detected: %s", c.broken[0])
	default:
		return apierror.Validation("%d validation errors detected: %s", n, strings.Join(c.broken[:n], "; "))
	}
}

func (c *constraints) refuse(at, value, must string) {
	c.broken = append(c.broken, fmt.Sprintf("Value %s at '%s' failed to satisfy constraint: Member must %s", value, at, must))
}

func (c *constraints) required(at string, given bool) bool {
	if !given {
		c.refuse(at, "null", "not be null")
	}
	return given
}

// text requires a string of at least least bytes, and at most the limit for names of tables,
// indexes and keys.
func (c *constraints) text(at string, value *string, least int) {
	if c.required(at, value != nil) {
		c.length(at, "'"+*value+"'", len(*value), least, maxName)
	}
}

func (c *constraints) length(at, value string, length, low, high int) {
	if length < low {
		c.refuse(at, value, "have length greater than or equal to "+strconv.Itoa(low))
	}
	if length > high {
		c.refuse(at, value, "have length less than or equal to "+strconv.Itoa(high))
	}
}

// name requires the name of an index.
func (c *constraints) name(at string, value *string) {
	c.text(at, value, minName)
	if value != nil && !consistsOfNameCharacters(*value) {
		c.refuse(at, "'"+*value+"'", "satisfy regular expression pattern: "+namePattern)
	}
}

func (c *constraints) atLeast(at string, value *int64, low int64) {
	if c.required(at, value != nil) && *value < low {
		c.refuse(at, fmt.Sprintf("'%d'", *value), fmt.Sprintf("have value greater than or equal to %d", low))
	}
}

// oneOf requires a value of a set. An empty value passes: another check requires values.
func oneOf[T ~string](c *constraints, at string, value T, set ...T) {
	if value == "" {
		return
	}
	for _, v := range set {
		if v == value {
			return
		}
	}
	c.refuse(at, "'"+string(value)+"'", fmt.Sprintf("satisfy enum value set: %s", listed(set)))
}

// listed returns a list in Java's notation, which DynamoDB's errors contain.
func listed[T ~string](list []T) string {
	var b strings.Builder
	b.WriteByte('[')
	for i, v := range list {
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString(string(v))
	}
	b.WriteByte(']')
	return b.String()
}

// element returns the path of an element of a list. DynamoDB counts from one.
func element(list string, i int) string {
	return list + "." + strconv.Itoa(i+1) + ".member"
}

// unsupported returns an error that names an unsupported parameter. If it were ignored, a test
// could pass that should fail.
func unsupported(what string) error {
	return apierror.Validation("dynamotest does not support %s", what)
}

// invalid returns the error for a parameter with a wrong meaning.
func invalid(format string, args ...any) error {
	return apierror.Validation("One or more parameter values were invalid: "+format, args...)
}
