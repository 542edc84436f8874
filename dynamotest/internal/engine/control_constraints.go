package engine

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/millrace-dev/millrace/dynamotest/internal/apierror"
)

// constraints collects what breaks the model of a request: what is missing, too long, not in a set.
// DynamoDB looks at all of it before it looks at what the request means, and reports up to ten
// findings at once.
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

// text wants a string of at least so many bytes, and at most as many as any name of a table, index
// or key has.
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

// name wants the name of an index.
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

// oneOf wants a value of a set. Nothing is fine: whether it is required is another question.
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

// listed writes a list as Java does, which the texts of DynamoDB's errors show.
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

// element is the path of an element of a list. DynamoDB counts from one.
func element(list string, i int) string {
	return list + "." + strconv.Itoa(i+1) + ".member"
}

// unsupported refuses by name what dynamotest leaves out: to ignore it would make a test pass that
// must not.
func unsupported(what string) error {
	return apierror.Validation("dynamotest does not support %s", what)
}

// invalid is the error of a parameter that is wrong by its meaning.
func invalid(format string, args ...any) error {
	return apierror.Validation("One or more parameter values were invalid: "+format, args...)
}
