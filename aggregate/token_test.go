package aggregate_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/aggregate"
)

func TestATokenIsReadAsItWasWritten(t *testing.T) {
	t.Parallel()
	for _, token := range []aggregate.Token{
		nil,
		{{aggregate.ID{Type: "order", Value: "42"}, 7}},
		{{aggregate.ID{Type: "user-account", Value: "a:b@c,d/e f\n%2C"}, 1<<64 - 1}, {aggregate.ID{Type: "größe", Value: "ü+ü"}, 1}},
	} {
		read, err := aggregate.ParseToken(token.String())
		require.NoError(t, err)
		assert.Equal(t, token, read)
		h := http.Header{}
		h.Set("Consistency-Token", token.String())
		var wire strings.Builder
		require.NoError(t, h.Write(&wire))
		assert.Equal(t, "Consistency-Token: "+token.String()+"\r\n", wire.String(), "a header can carry it")
	}
	assert.Equal(t, "order:42@7,account:alice@3", aggregate.Token{{aggregate.ID{Type: "order", Value: "42"}, 7}, {aggregate.ID{Type: "account", Value: "alice"}, 3}}.String())
}

func TestTextThatIsNoTokenIsRefused(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		"x", "a:b", "a@1", "a:b@", "a:b@x", "a:b@-1", "a:b@1,", ",", ":b@1", "a:@1", "a:%zz@1", "%zz:b@1", "a:%ff@1",
		strings.Repeat("a:b@1,", 100) + "a:b@1",
	} {
		_, err := aggregate.ParseToken(text)
		var invalid *aggregate.InvalidTokenError
		require.ErrorAs(t, err, &invalid, text)
		assert.Equal(t, text, invalid.Text)
		assert.Contains(t, err.Error(), "invalid consistency token: ")
	}
	token, err := aggregate.ParseToken(strings.Repeat("a:b@1,", 98) + "a:b@3,a:b@2")
	require.NoError(t, err)
	assert.Equal(t, aggregate.Token{{aggregate.ID{Type: "a", Value: "b"}, 3}}, token, "the latest version of each")
}

func TestTokensAreJoinedAndDivided(t *testing.T) {
	t.Parallel()
	order, account := aggregate.ID{Type: "order", Value: "1"}, aggregate.ID{Type: "account", Value: "1"}
	token := aggregate.Token{{order, 7}}.And(aggregate.Token{{account, 3}, {order, 5}}).And(aggregate.Token{{order, 8}})
	assert.Equal(t, aggregate.Token{{order, 8}, {account, 3}}, token)
	assert.Equal(t, aggregate.Token{{account, 3}}, token.Of("account", "other"))
	assert.Len(t, token, 2, "it is not changed")
}

func FuzzParseToken(f *testing.F) {
	f.Add("order:42@7,account:alice@3")
	f.Add("a:%2C@1")
	f.Fuzz(func(t *testing.T, text string) {
		token, err := aggregate.ParseToken(text)
		if err != nil {
			return
		}
		again, err := aggregate.ParseToken(token.String())
		require.NoError(t, err)
		assert.Equal(t, token, again)
	})
}
