package signin

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/millrace-dev/millrace/console"
)

var shown = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
	if actor, err := Authorize(r, console.Action{Name: "pause"}); err == nil {
		w.Header().Set("Actor", actor)
	}
})

func TestOnlyThePasswordOpensThePage(t *testing.T) {
	t.Parallel()
	page := WithPassword("ops", "secret", shown)
	for given, want := range map[[2]string]int{
		{"ops", "secret"}: http.StatusOK, {"ops", "wrong"}: http.StatusUnauthorized, {"", ""}: http.StatusUnauthorized, {"other", "secret"}: http.StatusUnauthorized,
	} {
		request := httptest.NewRequest(http.MethodGet, "/console/", http.NoBody)
		if given[0] != "" {
			request.SetBasicAuth(given[0], given[1])
		}
		answer := httptest.NewRecorder()
		page.ServeHTTP(answer, request)
		assert.Equal(t, want, answer.Code, "%q", given)
	}
}

func TestOnlyUsersWithASessionSeeThePage(t *testing.T) {
	t.Parallel()
	answer := func(user User, ok bool) *httptest.ResponseRecorder {
		w := httptest.NewRecorder()
		page := SignedIn(func(*http.Request) (User, bool) { return user, ok }, shown)
		page.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/console/", http.NoBody))
		return w
	}
	assert.Equal(t, http.StatusSeeOther, answer(User{}, false).Code)
	assert.Equal(t, http.StatusOK, answer(User{Name: "viewer"}, true).Code)
	assert.Empty(t, answer(User{Name: "viewer"}, true).Header().Get("Actor"))
	assert.Equal(t, "operator", answer(User{Name: "operator", MayAct: true}, true).Header().Get("Actor"))
}

func TestRedactHidesAddresses(t *testing.T) {
	t.Parallel()
	assert.JSONEq(t, `{"total":5}`, string(Redact(console.Payload{Kind: console.EventPayload, Data: []byte(`{"email":"a@example.com","total":5}`)})))
	assert.JSONEq(t, `{"correlation_id":"1"}`, string(Redact(console.Payload{Kind: console.MetadataPayload, Data: []byte(`{"correlation_id":"1","ip":"192.0.2.1"}`)})))
	assert.JSONEq(t, `{"Lines":[{},{"Customer":{"Name":"ada"}}]}`,
		string(Redact(console.Payload{Kind: console.StatePayload, Data: []byte(`{"Email":"a","Lines":[{"email":"b"},{"Customer":{"EMAIL":"c","Name":"ada"}}]}`)})))
	assert.JSONEq(t, `{}`, string(Redact(console.Payload{Kind: console.MetadataPayload, Data: []byte(`{"ip":"192.0.2.1"}`)})))
	assert.Nil(t, Redact(console.Payload{Kind: console.EventPayload, Data: []byte("text")}))
}
