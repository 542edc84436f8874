package machine

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/google/uuid"
)

// URL is the function URL of a function, in the invoke mode RESPONSE_STREAM. A request is an
// invocation with a payload of format 2.0.
type URL struct{ Function *Function }

// ServeHTTP implements [http.Handler].
func (u URL) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, 6<<20))
	if err != nil {
		http.Error(w, `{"Message":"Request Too Long"}`, http.StatusRequestEntityTooLarge)
		return
	}
	payload, err := json.Marshal(requestEvent(r, body))
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	s := &stream{to: w}
	// The invocation goes on if the client has gone.
	err = u.Function.Invoke(context.WithoutCancel(r.Context()), payload, s)
	switch {
	case s.begun && err != nil:
		panic(http.ErrAbortHandler) // cuts the response off
	case s.begun:
	case errors.Is(err, ErrThrottled):
		http.Error(w, `{"Message":"Too Many Requests"}`, http.StatusTooManyRequests)
	default:
		http.Error(w, `{"Message":"Internal Server Error"}`, http.StatusBadGateway)
	}
}

func requestEvent(r *http.Request, body []byte) events.LambdaFunctionURLRequest {
	headers, query := map[string]string{}, map[string]string{}
	for name, values := range r.Header {
		headers[strings.ToLower(name)] = strings.Join(values, ",")
	}
	for name, values := range r.URL.Query() {
		query[name] = strings.Join(values, ",")
	}
	source, _, _ := net.SplitHostPort(r.RemoteAddr)
	now := time.Now().UTC()
	return events.LambdaFunctionURLRequest{
		Version: "2.0", RawPath: r.URL.EscapedPath(), RawQueryString: r.URL.RawQuery, Headers: headers, QueryStringParameters: query,
		RequestContext: events.LambdaFunctionURLRequestContext{
			AccountID: Account, RequestID: uuid.NewString(), DomainName: r.Host, Time: now.Format("02/Jan/2006:15:04:05 -0700"), TimeEpoch: now.UnixMilli(),
			HTTP: events.LambdaFunctionURLRequestContextHTTPDescription{
				Method: r.Method, Path: r.URL.Path, Protocol: r.Proto, SourceIP: source, UserAgent: r.UserAgent(),
			},
		},
		Body: base64.StdEncoding.EncodeToString(body), IsBase64Encoded: true,
	}
}

// stream writes a streamed response to an HTTP client. It begins with a prelude: the status and the
// headers as JSON, and 8 zero bytes.
type stream struct {
	to      http.ResponseWriter
	prelude []byte
	begun   bool
}

func (s *stream) Write(p []byte) (int, error) {
	rest := p
	if !s.begun {
		s.prelude = append(s.prelude, p...)
		head, body, complete := bytes.Cut(s.prelude, make([]byte, 8))
		if !complete {
			return len(p), nil
		}
		if err := s.begin(head); err != nil {
			return 0, err
		}
		rest = body
	}
	if _, err := s.to.Write(rest); err != nil {
		return 0, err
	}
	return len(p), http.NewResponseController(s.to).Flush()
}

func (s *stream) begin(head []byte) error {
	var prelude struct {
		StatusCode int               `json:"statusCode"`
		Headers    map[string]string `json:"headers"`
		Cookies    []string          `json:"cookies"`
	}
	if err := json.Unmarshal(head, &prelude); err != nil {
		return err
	}
	for name, value := range prelude.Headers {
		s.to.Header().Set(name, value)
	}
	for _, cookie := range prelude.Cookies {
		s.to.Header().Add("Set-Cookie", cookie)
	}
	s.begun = true
	s.to.WriteHeader(prelude.StatusCode)
	return nil
}
