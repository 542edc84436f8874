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

// visitorCookie holds 128 random bits that only its browser knows. The user id of the visitor is a
// hash of them, so another user who sees the id cannot act as that visitor, and every server can
// compute it.
const visitorCookie = "poker_user"

const (
	secretBytes = 16
	userIDBytes = 15 // 24 characters of base32
	visitorAge  = 365 * 24 * time.Hour
)

var errNoVisitor = errors.New("the cookie " + visitorCookie + " is missing, which says who you are: allow cookies for this site and load the page again")

type visitorKey struct{}

// visit identifies the visitor by the cookie. It sets a cookie for new visitors with the reply to a
// GET. With secure, browsers send the cookie over encrypted connections only.
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

// isForVisitors reports whether a request is for a page or a query. Files, metrics and health
// checks need no user id.
func isForVisitors(r *http.Request) bool {
	return (r.Method == http.MethodGet || r.Method == http.MethodHead) &&
		(r.URL.Path == "/" || strings.HasPrefix(r.URL.Path, "/r/") || strings.HasPrefix(r.URL.Path, "/rooms/"))
}

// userIDOf returns the user id for the value of a cookie, or "" for a value that visit does not
// set.
func userIDOf(cookie string) string {
	secret, err := hex.DecodeString(cookie)
	if err != nil || len(secret) != secretBytes {
		return ""
	}
	hash := sha256.Sum256(secret)
	return strings.ToLower(base32.StdEncoding.EncodeToString(hash[:userIDBytes]))
}

// currentUser returns the user id of the visitor, or "" if it is not known.
func currentUser(r *http.Request) string {
	userID, _ := r.Context().Value(visitorKey{}).(string)
	return userID
}

// requireUser returns the user id for a command, or an error if it is not known.
func requireUser(r *http.Request) (string, error) {
	if userID := currentUser(r); userID != "" {
		return userID, nil
	}
	return "", errNoVisitor
}
