package web

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base32"
	"encoding/hex"
	"errors"
	"net/http"
	"strings"
	"time"
)

// visitorCookie holds 128 random bits that only its browser knows. Its visitor's user id is a hash
// of them, so whoever sees the id cannot act for them, and every server works it out by itself.
const visitorCookie = "poker_user"

const (
	secretBytes = 16
	userIDBytes = 15 // 24 characters of base32
	visitorAge  = 365 * 24 * time.Hour
)

var errNoVisitor = errors.New("the cookie " + visitorCookie + " is missing, which says who you are: allow cookies for this site and load the page again")

type visitorKey struct{}

// visit finds out who asks, and sends those who are new a cookie with the reply to a GET, for
// encrypted connections only if it is secure.
func visit(next http.Handler, secure bool) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		userID := ""
		if cookie, err := r.Cookie(visitorCookie); err == nil {
			userID = userIDOf(cookie.Value)
		}
		if userID == "" && isForVisitors(r) {
			secret := make([]byte, secretBytes)
			_, _ = rand.Read(secret) // never fails
			value := hex.EncodeToString(secret)
			http.SetCookie(w, &http.Cookie{
				Name: visitorCookie, Value: value, Path: "/", MaxAge: int(visitorAge.Seconds()),
				HttpOnly: true, SameSite: http.SameSiteLaxMode, Secure: secure || r.TLS != nil,
			})
			userID = userIDOf(value)
		}
		next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), visitorKey{}, userID)))
	})
}

// isForVisitors separates page and queries from what programs and browsers fetch without being
// anyone.
func isForVisitors(r *http.Request) bool {
	return (r.Method == http.MethodGet || r.Method == http.MethodHead) &&
		(r.URL.Path == "/" || strings.HasPrefix(r.URL.Path, "/r/") || strings.HasPrefix(r.URL.Path, "/rooms/"))
}

// userIDOf is empty for what visit does not set.
func userIDOf(cookie string) string {
	secret, err := hex.DecodeString(cookie)
	if err != nil || len(secret) != secretBytes {
		return ""
	}
	hash := sha256.Sum256(secret)
	return strings.ToLower(base32.StdEncoding.EncodeToString(hash[:userIDBytes]))
}

// you is the user id of who asks, empty if it is not known.
func you(r *http.Request) string {
	userID, _ := r.Context().Value(visitorKey{}).(string)
	return userID
}

// visitor is you for commands, which need to know.
func visitor(r *http.Request) (string, error) {
	if userID := you(r); userID != "" {
		return userID, nil
	}
	return "", errNoVisitor
}
