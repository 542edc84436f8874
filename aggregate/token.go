package aggregate

import (
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/millrace-dev/millrace/internal/printable"
)

// VersionedID is an aggregate at one of its versions.
type VersionedID struct {
	ID      ID     // the aggregate
	Version uint64 // the number of its last event
}

// Token is a consistency token: it lists the versions that a write has led to, so that a reader can
// wait until it sees them. A client receives it as a string with the reply to a command, and sends
// it with the next query:
//
//	w.Header().Set("Consistency-Token", order.Token().String())
//
//	token, err := aggregate.ParseToken(r.Header.Get("Consistency-Token"))
//	err = groups.New(j).WaitToken(ctx, "order-history", token)
//
// An empty Token stands for no write. Its text is empty.
type Token []VersionedID

// maxTokenVersions is the number of aggregates to which one transaction can write.
const maxTokenVersions = 100

// String returns the token as text of letters, digits and some punctuation, such as
// order:42@7,account:alice@3. The text can be used in a header, and in a URL if it is escaped
// there. Other characters of an id are escaped as in a query. See [ParseToken].
func (t Token) String() string {
	parts := make([]string, len(t))
	for i, v := range t {
		parts[i] = url.QueryEscape(v.ID.Type) + ":" + url.QueryEscape(v.ID.Value) + "@" + strconv.FormatUint(v.Version, 10)
	}
	return strings.Join(parts, ",")
}

// Of returns the part of the token about the given aggregate types, for a reader that reads only
// these.
func (t Token) Of(aggregateTypes ...string) Token {
	return slices.DeleteFunc(slices.Clone(t), func(v VersionedID) bool { return !slices.Contains(aggregateTypes, v.ID.Type) })
}

// And joins two tokens. For an aggregate in both it uses the later version.
func (t Token) And(other Token) Token {
	joined := slices.Clone(t)
	for _, v := range other {
		if i := slices.IndexFunc(joined, func(w VersionedID) bool { return w.ID == v.ID }); i >= 0 {
			joined[i].Version = max(joined[i].Version, v.Version)
		} else {
			joined = append(joined, v)
		}
	}
	return joined
}

// ParseToken parses the text of a [Token]. A client can send any text, so a token only says what to
// wait for and proves nothing. A token has at most 100 aggregates. If an aggregate occurs several
// times, its latest version counts.
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
			return nil, &InvalidTokenError{text, fmt.Sprintf("%s: %v", printable.Quote(part), err)}
		}
		token = token.And(Token{v})
	}
	return token, nil
}

func parseVersion(text string) (v VersionedID, err error) {
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

// InvalidTokenError reports that Text is not a [Token]. Reason says why. The client that sent it
// made a mistake: a server replies with the status 400.
type InvalidTokenError struct{ Text, Reason string }

func (e *InvalidTokenError) Error() string { return "invalid consistency token: " + e.Reason }
