package api

import (
	"encoding/json"
	"net/http"
)

// reply is a successful answer.
type reply struct {
	status   int
	location string
	body     any
}

func (a reply) write(w http.ResponseWriter) {
	if a.location != "" {
		w.Header().Set("Location", a.location)
	}
	writeJSON(w, "application/json", a.status, a.body)
}

func writeJSON(w http.ResponseWriter, contentType string, status int, body any) {
	w.Header().Set("Content-Type", contentType)
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(body) // a client that has gone needs no answer
}
