package machine_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/lambda"
	"github.com/aws/aws-lambda-go/lambdaurl"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/examples/lambda/machine"
)

// patience limits a failing test.
const patience = time.Minute

// TestMain runs a function if the machine has started this program.
func TestMain(m *testing.M) {
	if os.Getenv("AWS_LAMBDA_RUNTIME_API") != "" {
		runFunction(os.Getenv("_HANDLER"))
	}
	os.Exit(m.Run())
}

// runFunction runs a function. The payload of most of them is the URL of a gate.
func runFunction(name string) {
	switch name {
	case "pid":
		lambda.Start(func() (int, error) { return os.Getpid(), nil })
	case "wait":
		lambda.Start(func(ctx context.Context, url string) (int, error) { return os.Getpid(), get(ctx, url) })
	case "fail":
		lambda.Start(func() error { return errors.New("out of order") })
	case "crash":
		lambda.Start(func() { os.Exit(3) })
	case "hang":
		lambda.Start(func() { select {} })
	case "environment":
		lambda.Start(func(ctx context.Context) (string, error) {
			deadline, _ := ctx.Deadline()
			return fmt.Sprint(os.Getenv("SETTING"), " ", os.Getenv("HOME"), " ", time.Until(deadline).Round(time.Minute)), nil
		})
	case "stream":
		lambdaurl.Start(http.HandlerFunc(stream))
	case "torn":
		lambda.Start(func() (io.Reader, error) { return io.MultiReader(strings.NewReader("first"), torn{}), nil })
	case "init hang":
		select {}
	case "init error":
		url := "http://" + os.Getenv("AWS_LAMBDA_RUNTIME_API") + "/2018-06-01/runtime/init/error"
		response, err := http.Post(url, "application/json", strings.NewReader(`{"errorType": "Setting", "errorMessage": "is missing"}`))
		if err == nil {
			_ = response.Body.Close()
		}
	}
	os.Exit(4)
}

type torn struct{}

func (torn) Read([]byte) (int, error) { return 0, errors.New("torn") }

// stream writes a part of the response before the gate and one after it.
func stream(w http.ResponseWriter, r *http.Request) {
	http.SetCookie(w, &http.Cookie{Name: "one", Value: "1"})
	http.SetCookie(w, &http.Cookie{Name: "two", Value: "2"})
	w.Header().Set("Content-Type", "text/plain")
	w.WriteHeader(http.StatusTeapot)
	body, _ := io.ReadAll(r.Body)
	fmt.Fprintf(w, "%s %s?%s %s %s\n", r.Method, r.URL.Path, r.URL.RawQuery, r.Header.Get("Mark"), body)
	if err := get(r.Context(), r.Header.Get("Gate")); err != nil {
		panic(err)
	}
	fmt.Fprintln(w, "last")
}

func get(ctx context.Context, url string) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	return response.Body.Close()
}

// function returns a function of this program.
func function(t *testing.T, c machine.Config) *machine.Function {
	t.Helper()
	if c.Timeout == 0 {
		c.Timeout = patience
	}
	c.InitTimeout = max(c.InitTimeout, patience)
	f, err := machine.NewFunction(c)
	require.NoError(t, err)
	t.Cleanup(f.Close)
	return f
}
