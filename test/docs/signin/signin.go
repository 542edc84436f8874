// Package signin puts consoles behind the authentication of a company.
package signin

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/json"
	"errors"
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/ThreeDotsLabs/watermill"

	"github.com/millrace-dev/millrace"
	"github.com/millrace-dev/millrace/console"
)

// BehindProxy is a console behind a proxy that authenticates.
func BehindProxy(app *millrace.App, audit watermill.LoggerAdapter) (*console.Console, error) {
	return console.New(console.Config{
		App: app, Hosts: []string{"ops.example.com"}, AllowActions: true, Logger: audit,
		Authorize: func(r *http.Request, _ console.Action) (string, error) {
			user := r.Header.Get("X-Auth-Request-Email")
			roles := strings.Split(r.Header.Get("X-Auth-Request-Groups"), ",")
			switch {
			case user == "":
				return "", errors.New("the proxy has not said who you are")
			case !slices.Contains(roles, "operators"):
				return user, errors.New("only operators may do that")
			}
			return user, nil
		},
	})
}

// User is a user with a session.
type User struct {
	Name     string
	MayAct   bool
	MayReset bool
}

type userKey struct{}

// SignedIn passes on requests of users with a session, and sends others to the login page.
func SignedIn(session func(*http.Request) (User, bool), next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		user, ok := session(r)
		if !ok {
			http.Redirect(w, r, "/login", http.StatusSeeOther)
			return
		}
		next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), userKey{}, user)))
	})
}

// Authorize decides by the user of the session.
func Authorize(r *http.Request, a console.Action) (actor string, err error) {
	user, _ := r.Context().Value(userKey{}).(User)
	switch {
	case !user.MayAct:
		return user.Name, errors.New("ask an operator")
	case a.Name == "reset" && !user.MayReset:
		return user.Name, errors.New("a reset repeats effects: ask the owner of the group")
	}
	return user.Name, nil
}

// WithPassword asks for a name and a password.
func WithPassword(name, password string, next http.Handler) http.Handler {
	want := sha256.Sum256([]byte(name + "\x00" + password))
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		n, p, _ := r.BasicAuth()
		if given := sha256.Sum256([]byte(n + "\x00" + p)); subtle.ConstantTimeCompare(given[:], want[:]) != 1 {
			w.Header().Set("WWW-Authenticate", `Basic realm="console"`)
			http.Error(w, "Enter name and password.", http.StatusUnauthorized)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// Redact removes fields named email, at any depth, and metadata except the correlation id.
func Redact(p console.Payload) []byte {
	var value any
	if json.Unmarshal(p.Data, &value) != nil {
		return nil // hides data that is not JSON
	}
	if metadata, ok := value.(map[string]any); ok && p.Kind == console.MetadataPayload {
		maps.DeleteFunc(metadata, func(name string, _ any) bool { return name != "correlation_id" })
	}
	data, err := json.Marshal(withoutEmail(value))
	if err != nil {
		return nil
	}
	return data
}

func withoutEmail(value any) any {
	switch value := value.(type) {
	case map[string]any:
		for name, inner := range value {
			if strings.EqualFold(name, "email") {
				delete(value, name)
			} else {
				value[name] = withoutEmail(inner)
			}
		}
	case []any:
		for i, inner := range value {
			value[i] = withoutEmail(inner)
		}
	}
	return value
}
