package aggregate

import (
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// Version is an aggregate at one of its versions.
type Version struct {
	ID      ID
	Version uint64
}

// Token is a consistency token: what a write has led to, for a reader that wants to see it. A
// client gets it as a string with the reply to a command, and sends it with the next query:
//
//	w.Header().Set("Consistency-Token", order.Token().String())
//
//	token, err := aggregate.ParseToken(r.Header.Get("Consistency-Token"))
//	err = groups.New(j).WaitToken(ctx, "order-history", token)
//
// The empty Token is of no write, and its text is empty.
type Token []Version

// maxTokenVersions is as many as one transaction can write to.
const maxTokenVersions = 100

// String returns text of letters, digits and some punctuation, which fits into a header and,
// escaped once more, into a URL: order:42@7,account:alice@3. An id with other characters is escaped
// as in a query. See [ParseToken].
func (t Token) String() string {
	parts := make([]string, len(t))
	for i, v := range t {
		parts[i] = url.QueryEscape(v.ID.Type) + ":" + url.QueryEscape(v.ID.Value) + "@" + strconv.FormatUint(v.Version, 10)
	}
	return strings.Join(parts, ",")
}

// Of returns the part of a token that is about some aggregate types, for a reader that has these
// alone.
func (t Token) Of(aggregateTypes ...string) Token {
	return slices.DeleteFunc(slices.Clone(t), func(v Version) bool { return !slices.Contains(aggregateTypes, v.ID.Type) })
}

// And joins two tokens. For an aggregate in both it takes the later version.
func (t Token) And(other Token) Token {
	joined := slices.Clone(t)
	for _, v := range other {
		if i := slices.IndexFunc(joined, func(w Version) bool { return w.ID == v.ID }); i >= 0 {
			joined[i].Version = max(joined[i].Version, v.Version)
		} else {
			joined = append(joined, v)
		}
	}
	return joined
}

// ParseToken reads the text of a [Token]. The text may come from anybody, so a token says what to
// wait for and proves nothing. It has up to 100 aggregates. Of one that comes several times the
// latest version counts.
//
// The error is an [*InvalidTokenError].
func ParseToken(text string) (Token, error) {
	if text == "" {
		return nil, nil
	}
	if n := strings.Count(text, ",") + 1; n > maxTokenVersions {
		return nil, &InvalidTokenError{text, fmt.Sprintf("it has %d aggregates, at most %d are allowed", n, maxTokenVersions)}
	}
	var token Token
	for part := range strings.SplitSeq(text, ",") {
		v, err := parseVersion(part)
		if err != nil {
			return nil, &InvalidTokenError{text, fmt.Sprintf("%s: %v", quote(part), err)}
		}
		token = token.And(Token{v})
	}
	return token, nil
}

func parseVersion(text string) (v Version, err error) {
	id, number, hasNumber := strings.Cut(text, "@")
	kind, value, hasValue := strings.Cut(id, ":")
	if !hasNumber || !hasValue {
		return v, fmt.Errorf("want type:id@version")
	}
	if v.ID.Type, err = url.QueryUnescape(kind); err != nil {
		return v, err
	}
	if v.ID.Value, err = url.QueryUnescape(value); err != nil {
		return v, err
	}
	if v.Version, err = strconv.ParseUint(number, 10, 64); err != nil {
		return v, fmt.Errorf("the version is not a number")
	}
	return v, v.ID.Validate()
}

// InvalidTokenError reports text that is not a [Token]. It is the fault of who has sent it: a
// server answers with the status 400.
type InvalidTokenError struct{ Text, Reason string }

func (e *InvalidTokenError) Error() string { return "invalid consistency token: " + e.Reason }
