package httpapi

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"

	"github.com/google/uuid"

	"github.com/millrace-dev/millrace/repository"
)

// MaxBody is the largest body of a request that [Read] accepts, in bytes.
const MaxBody = 1 << 20

// Read decodes the body of a request, which is one JSON document. If it cannot, it replies with
// status 400, or with 413 to a body of more than [MaxBody], and returns false. The body of the
// request can be read again.
func Read(w http.ResponseWriter, r *http.Request, into any) bool {
	text, err := io.ReadAll(http.MaxBytesReader(w, r.Body, MaxBody))
	if err == nil {
		r.Body = &read{bytes.NewReader(text), text}
		err = decode(text, into)
	}
	var tooLarge *http.MaxBytesError
	switch {
	case err == nil:
		return true
	case errors.As(err, &tooLarge):
		http.Error(w, fmt.Sprintf("the body has more than %d bytes", tooLarge.Limit), http.StatusRequestEntityTooLarge)
	case errors.Is(err, io.EOF):
		http.Error(w, "the body is empty, and must be JSON", http.StatusBadRequest)
	default:
		http.Error(w, "the body is not the JSON of this request: "+err.Error(), http.StatusBadRequest)
	}
	return false
}

func decode(text []byte, into any) error {
	body := json.NewDecoder(bytes.NewReader(text))
	if err := body.Decode(into); err != nil {
		return err
	}
	if _, err := body.Token(); !errors.Is(err, io.EOF) {
		return errors.New("there is more after the document")
	}
	return nil
}

// IdempotencyKey is the header with which clients mark a request that they may repeat.
const IdempotencyKey = "Idempotency-Key"

// space is the namespace of command ids. It never changes.
var space = uuid.MustParse("5d6ac5fc-93b8-4a0e-a3ae-51ba21a4b8a1")

// CommandID returns an id for repository.WithCommandID, or for something new that a request makes.
// It is the same for each request with the same method, path, scope and [IdempotencyKey], and
// differs otherwise. Without the header it is random, so a repeated request is a new one. The scope
// is what else makes two requests different, such as the customer.
func CommandID(r *http.Request, scope ...string) string {
	key := r.Header.Get(IdempotencyKey)
	if key == "" {
		return uuid.NewString()
	}
	return uuid.NewSHA1(space, fmt.Appendf(nil, "%q %q %q %q", r.Method, r.URL.Path, scope, key)).String()
}

// Once returns the options of a command that takes effect once, however often the client sends the
// request: [CommandID] and the body as the content. A repetition with another body, or with the
// same JSON in other bytes, fails with a *repository.CommandMismatchError. Call Once after [Read].
// It returns no options for a request without an [IdempotencyKey].
func Once(r *http.Request, scope ...string) []repository.Option {
	if r.Header.Get(IdempotencyKey) == "" {
		return nil
	}
	options := []repository.Option{repository.WithCommandID(CommandID(r, scope...))}
	if body, again := r.Body.(*read); again {
		options = append(options, repository.WithCommandContent(body.text))
	}
	return options
}

// read is the body of a request that [Read] has read.
type read struct {
	*bytes.Reader
	text []byte
}

func (*read) Close() error { return nil }
