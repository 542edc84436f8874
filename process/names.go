package process

import (
	"context"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/millrace-dev/millrace/repository"
)

const (
	// maxTimeoutName is the maximum length of the name of a timeout with a key, in bytes.
	maxTimeoutName = 512
	// maxTimeouts is the maximum number of timeouts that are set in a process with keys.
	maxTimeouts = 1000
	// maxPerStep is more than the number of timeouts that a step can set: a transaction has 100
	// items.
	maxPerStep = 100
)

// timeout returns the reaction to a timeout, and its key. A name without a reaction of its own
// belongs to the reaction with the longest name that ends in a slash and begins it.
func (d Definition[S]) timeout(name string) (r Reaction[S], key string, ok bool) {
	if r, ok = d.timeouts[name]; ok {
		return r, "", true
	}
	for end := len(name); end > 0; {
		end = strings.LastIndexByte(name[:end], '/')
		if r, ok = d.timeouts[name[:end+1]]; ok {
			return r, name[end+1:], true
		}
	}
	return r, "", false
}

// checkTimeout returns an error if a step cannot set or cancel a timeout of that name.
func (d Definition[S]) checkTimeout(name string) error {
	r, key, ok := d.timeout(name)
	invalid := func(reason string) error { return fmt.Errorf("%w: timeout %q %s", ErrInvalidStep, name, reason) }
	switch {
	case !ok:
		return &UnknownTimeoutError{Process: d.Type(), Timeout: name}
	case !strings.HasSuffix(r.timeout, "/"):
		return nil
	case key == "":
		return invalid("has no key: append one")
	case len(name) > maxTimeoutName:
		return invalid(fmt.Sprintf("has %d bytes, with its key it can have %d", len(name), maxTimeoutName))
	case !utf8.ValidString(key) || strings.ContainsFunc(key, unicode.IsControl):
		return invalid("has a key that is not valid UTF-8 or has control characters")
	}
	return nil
}

// checkNumber returns a [*TooManyTimeoutsError] if a step would set too many timeouts with keys. A
// process with few events cannot have too many. Otherwise it reads which ones are set, eventually
// consistent: the limit need not be exact.
func (m *Manager[S]) checkNumber(ctx context.Context, process repository.Aggregate[S], step Step[S]) error {
	changed, keys := map[string]bool{}, false
	for _, name := range step.cancelled {
		changed[timeoutPrefix+name] = true
	}
	for _, t := range step.timeouts {
		_, key, _ := m.definition.timeout(t.Name)
		changed[timeoutPrefix+t.Name], keys = true, keys || key != ""
	}
	if !keys || process.Version < maxTimeouts/maxPerStep {
		return nil
	}
	query := &dynamodb.QueryInput{
		TableName: &m.config.Table, KeyConditionExpression: aws.String("#p = :p AND begins_with(#s, :s)"), ProjectionExpression: aws.String("#s"),
		ExpressionAttributeNames:  map[string]string{"#p": pkey, "#s": skey},
		ExpressionAttributeValues: item{":p": rowKey(process.ID, "")[pkey], ":s": textValue(timeoutPrefix)},
	}
	for number := len(step.timeouts); ; {
		out, err := m.client.Query(ctx, query)
		if err != nil {
			return fmt.Errorf("count the timeouts of the process: %w", explain(err, m.config.Table))
		}
		for _, row := range out.Items {
			if !changed[text(row[skey])] {
				number++
			}
		}
		if number > maxTimeouts {
			return &TooManyTimeoutsError{Process: process.ID, Max: maxTimeouts}
		}
		if query.ExclusiveStartKey = out.LastEvaluatedKey; query.ExclusiveStartKey == nil {
			return nil
		}
	}
}
