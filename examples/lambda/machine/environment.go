package machine

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"sync"
	"time"
)

// environment is an execution environment: a process, and the server of its Runtime API.
type environment struct {
	function *Function
	process  *process
	server   *http.Server
	served   chan struct{}    // closed when the server has ended
	next     chan *invocation // to the request for the next invocation
	waits    chan struct{}    // from this request, when it begins to wait

	mu      sync.Mutex
	current *invocation
	failed  error // of the initialisation
}

// invocation is one invocation of a function.
type invocation struct {
	id       string
	payload  []byte
	deadline time.Time

	mu       sync.Mutex
	response io.Writer // nil if nothing more may be written
	ended    bool      // whether the function has responded
	err      error
}

// Write writes a part of the response. If the receiver has gone, the rest is discarded.
func (i *invocation) Write(p []byte) (int, error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.response != nil {
		if _, err := i.response.Write(p); err != nil {
			i.response = nil
		}
	}
	return len(p), nil
}

func (i *invocation) end(err error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.ended, i.err = true, err
}

// result returns the error of the invocation. Nothing is written to the response afterwards.
func (i *invocation) result(err error) error {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.response = nil
	switch {
	case err != nil:
		return err
	case !i.ended:
		return &Error{"Runtime.NoResponse", "the function asked for another invocation without a response"}
	default:
		return i.err
	}
}

// start starts an environment, and waits until its process asks for an invocation.
func (f *Function) start(ctx context.Context) (*environment, error) {
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	e := &environment{function: f, served: make(chan struct{}), next: make(chan *invocation), waits: make(chan struct{})}
	e.server = &http.Server{Handler: e.routes(), ReadHeaderTimeout: 10 * time.Second}
	e.process, err = start(f.config.Command, append([]string{
		"AWS_LAMBDA_RUNTIME_API=" + listener.Addr().String(),
		"_HANDLER=" + f.config.Name,
		"AWS_LAMBDA_FUNCTION_NAME=" + f.config.Name,
		"AWS_LAMBDA_FUNCTION_VERSION=$LATEST",
		"AWS_LAMBDA_FUNCTION_MEMORY_SIZE=1024",
		"AWS_LAMBDA_INITIALIZATION_TYPE=on-demand",
		"AWS_REGION=" + Region,
	}, f.config.Env...), f.config.Output)
	if err != nil {
		return nil, errors.Join(err, listener.Close())
	}
	go func() {
		defer close(e.served)
		_ = e.server.Serve(listener) // until close
	}()
	limit := time.NewTimer(f.config.InitTimeout)
	defer limit.Stop()
	select {
	case <-e.waits:
		return e, nil
	case <-e.process.ended:
		err = e.exited()
	case <-limit.C:
		err = &Error{TimedOut, fmt.Sprintf("the initialisation took more than %s", f.config.InitTimeout)}
	case <-ctx.Done():
		err = ctx.Err()
	}
	e.close()
	return nil, err
}

// exited returns the error of an environment whose process has ended.
func (e *environment) exited() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.failed != nil {
		return e.failed
	}
	return &Error{Exited, "the process has ended: " + e.process.cmd.ProcessState.String()}
}

// invoke runs an invocation. The process is frozen afterwards, or has ended.
func (e *environment) invoke(ctx context.Context, i *invocation) error {
	timeout := e.function.config.Timeout
	i.deadline = time.Now().Add(timeout)
	limit := time.NewTimer(timeout)
	defer limit.Stop()
	e.mu.Lock()
	e.current = i
	e.mu.Unlock()
	e.process.thaw()
	next := e.next
	for {
		select {
		case next <- i:
			next = nil
		case <-e.waits:
			e.process.freeze()
			return i.result(nil)
		case <-e.process.ended:
			return i.result(e.exited())
		case <-limit.C:
			e.process.kill()
			return i.result(&Error{TimedOut, fmt.Sprintf("the invocation took more than %s", timeout)})
		case <-ctx.Done():
			e.process.kill()
			return i.result(ctx.Err())
		}
	}
}

// close ends the process and the server.
func (e *environment) close() {
	e.process.kill()
	_ = e.server.Close()
	<-e.served
}

// routes returns the endpoints of the Lambda Runtime API.
func (e *environment) routes() http.Handler {
	const base = "/2018-06-01/runtime/"
	mux := http.NewServeMux()
	mux.HandleFunc("GET "+base+"invocation/next", e.handleNext)
	mux.HandleFunc("POST "+base+"invocation/{id}/response", e.handleResponse)
	mux.HandleFunc("POST "+base+"invocation/{id}/error", e.handleError)
	mux.HandleFunc("POST "+base+"init/error", e.handleInitError)
	return mux
}

// handleNext waits for the next invocation. The request for it also ends the one before.
func (e *environment) handleNext(w http.ResponseWriter, r *http.Request) {
	select {
	case e.waits <- struct{}{}:
	case <-r.Context().Done():
		return
	}
	select {
	case i := <-e.next:
		h := w.Header()
		h.Set("Content-Type", "application/json")
		h.Set("Lambda-Runtime-Aws-Request-Id", i.id)
		h.Set("Lambda-Runtime-Deadline-Ms", strconv.FormatInt(i.deadline.UnixMilli(), 10))
		h.Set("Lambda-Runtime-Invoked-Function-Arn", "arn:aws:lambda:"+Region+":"+Account+":function:"+e.function.config.Name)
		_, _ = w.Write(i.payload) // an error means that the process has ended
	case <-r.Context().Done():
	}
}

// invocation returns the current invocation if the request is about it, or replies with an error.
func (e *environment) invocation(w http.ResponseWriter, r *http.Request) *invocation {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.current == nil || e.current.id != r.PathValue("id") {
		http.Error(w, `{"errorType": "InvalidRequestID", "errorMessage": "this is not the current invocation"}`, http.StatusBadRequest)
		return nil
	}
	return e.current
}

// handleResponse receives a response, which the function may stream. Whether it streams does not
// matter here, so the header Lambda-Runtime-Function-Response-Mode is not read. The trailers report
// an error in the middle of a stream.
func (e *environment) handleResponse(w http.ResponseWriter, r *http.Request) {
	i := e.invocation(w, r)
	if i == nil {
		return
	}
	if _, err := io.Copy(i, r.Body); err != nil {
		return // the process has ended
	}
	var failed error
	if name := r.Trailer.Get("Lambda-Runtime-Function-Error-Type"); name != "" {
		body, _ := base64.StdEncoding.DecodeString(r.Trailer.Get("Lambda-Runtime-Function-Error-Body"))
		failed = errorOf(name, body)
	}
	i.end(failed)
	w.WriteHeader(http.StatusAccepted)
}

func (e *environment) handleError(w http.ResponseWriter, r *http.Request) {
	i := e.invocation(w, r)
	if i == nil {
		return
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return // the process has ended
	}
	i.end(errorOf("Unhandled", body))
	w.WriteHeader(http.StatusAccepted)
}

func (e *environment) handleInitError(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return // the process has ended
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.failed = errorOf("Runtime.InitError", body)
	w.WriteHeader(http.StatusAccepted)
}

// errorOf returns the error that a function reports. It has the given type if the body has none.
func errorOf(name string, body []byte) error {
	e := &Error{Type: name}
	if err := json.Unmarshal(body, e); err != nil {
		e.Message = string(body)
	}
	return e
}
