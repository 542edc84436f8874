package dynamotest

import (
	"hash/crc32"
	"io"
	"net/http"
	"strconv"
	"time"

	"github.com/millrace-dev/millrace/dynamotest/internal/apierror"
	"github.com/millrace-dev/millrace/dynamotest/internal/wire"
)

// handler serves a database over a socket.
type handler struct{ db *DB }

func (h handler) ServeHTTP(w http.ResponseWriter, request *http.Request) {
	body, err := io.ReadAll(io.LimitReader(request.Body, maxRequestSize+1)) // one more is refused
	if err != nil {
		status, text := wire.EncodeError(apierror.Serialization("the request cannot be read: %v", err))
		write(w, answer{status: status, body: text, id: h.db.requests.Add(1), at: h.db.clock.Now()})
		return
	}
	reply, err := h.db.serve(request.Context(), request.Header, body)
	if err != nil {
		panic(http.ErrAbortHandler) // net/http cuts the connection for this panic
	}
	write(w, reply)
}

func write(w http.ResponseWriter, reply answer) {
	for name, values := range reply.header() {
		w.Header()[name] = values
	}
	w.WriteHeader(reply.status)
	_, _ = w.Write(reply.body) // the client may have disconnected
}

// answer is a reply to be sent.
type answer struct {
	status int
	body   []byte
	id     uint64
	at     time.Time
	as     http.Header // headers of the database behind a Proxy; nil for a DB
}

func (a answer) header() http.Header {
	if a.as != nil {
		return a.as
	}
	return http.Header{
		"Content-Type":     {"application/x-amz-json-1.0"},
		"Content-Length":   {strconv.Itoa(len(a.body))},
		"X-Amz-Crc32":      {strconv.FormatUint(uint64(crc32.ChecksumIEEE(a.body)), 10)},
		"X-Amzn-Requestid": {strconv.FormatUint(a.id, 10)},
		"Date":             {a.at.UTC().Format(http.TimeFormat)},
	}
}
