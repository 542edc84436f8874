package dynamolocal

import (
	"context"
	"net/http"
	"net/http/httptest"
	"os"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestRestartKillsTheEmulatorAndStartsItOnTheSamePort(t *testing.T) {
	install(t, "java", "npm")
	old := mustStart(t, Options{})

	next := mustRestart(t, old)

	select {
	case <-old.Done():
	default:
		t.Fatal("the old emulator must have ended when Restart returns")
	}
	assert.Equal(t, 128+int(syscall.SIGKILL), old.process.exitCode(), "it must not be asked to end")
	assert.Equal(t, old.Endpoint, next.Endpoint)
	require.NoError(t, Check(t.Context(), next.Endpoint))
	old.Stop()
	require.NoError(t, Check(t.Context(), next.Endpoint), "Stop of the old one must leave the new one alone")
}

func TestRestartTriesAgainWhileThePortIsNotFree(t *testing.T) {
	install(t, "java", "npm")
	old := mustStart(t, Options{})
	t.Setenv(fakeEmulator, "lose port")

	next := mustRestart(t, old)

	assert.FileExists(t, os.Getenv(fakeMark), "the first attempt must have lost the port")
	assert.Equal(t, old.Endpoint, next.Endpoint)
	require.NoError(t, Check(t.Context(), next.Endpoint))
}

func TestRestartRemovesTheContainerFirst(t *testing.T) {
	install(t, "docker")
	old := mustStart(t, Options{})
	t.Setenv(fakeDocker, "record")

	next := mustRestart(t, old)

	recorded, err := os.ReadFile(os.Getenv(fakeMark))
	require.NoError(t, err)
	assert.Contains(t, string(recorded), "rm --force millrace-dynamodb-")
	require.NoError(t, Check(t.Context(), next.Endpoint))
}

func TestRestartLeavesAServerAloneThatWasThereAlready(t *testing.T) {
	install(t)
	there := httptest.NewServer(http.HandlerFunc(refuseUnsigned))
	defer there.Close()
	t.Setenv(EndpointEnv, there.URL)
	s, err := Start(t.Context(), Options{})
	require.NoError(t, err)

	_, err = s.Restart(t.Context())

	require.ErrorContains(t, err, "was not started here")
	require.NoError(t, Check(t.Context(), there.URL))
}

func TestRestartTellsThatTheEmulatorDoesNotComeUpAgain(t *testing.T) {
	install(t, "java", "npm")
	old := mustStart(t, Options{})
	t.Setenv(fakeEmulator, "crash")

	_, err := old.Restart(t.Context())

	require.ErrorContains(t, err, "exit status 3")
}

func mustRestart(t *testing.T, old *Server) *Server {
	t.Helper()
	next, err := old.Restart(context.Background())
	require.NoError(t, err)
	t.Cleanup(next.Stop)
	return next
}
