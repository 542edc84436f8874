package dynamolocal

import (
	"context"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestStartUsesTheEndpointOfTheEnvironment(t *testing.T) {
	install(t)
	there := httptest.NewServer(http.HandlerFunc(refuseUnsigned))
	defer there.Close()
	t.Setenv(EndpointEnv, there.URL)

	s, err := Start(t.Context(), Options{})

	require.NoError(t, err)
	assert.Equal(t, there.URL, s.Endpoint)
	assert.False(t, s.Owned())
	s.Stop()
	require.NoError(t, Check(t.Context(), there.URL), "Stop must leave a server alone that was there already")
}

func TestStartRefusesAnEndpointThatIsNoDynamoDB(t *testing.T) {
	other := httptest.NewServer(http.NotFoundHandler())
	defer other.Close()
	closed := httptest.NewServer(http.NotFoundHandler())
	closed.Close()

	for name, c := range map[string]struct{ endpoint, want string }{
		"no URL":            {"dynamo", "is not an endpoint"},
		"no scheme":         {"localhost:8000", "is not an endpoint"},
		"no host":           {"http://", "is not an endpoint"},
		"nothing listens":   {closed.URL, "no DynamoDB answers at " + closed.URL},
		"something else":    {other.URL, "is not DynamoDB (HTTP 404 Not Found)"},
		"broken characters": {"http://a b", "is not an endpoint"},
	} {
		t.Run(name, func(t *testing.T) {
			// There must be no fallback to these: the user has named an endpoint.
			install(t, "java", "npm")
			t.Setenv(EndpointEnv, c.endpoint)
			_, err := start(t.Context(), Options{}, packTiny(t))
			require.ErrorContains(t, err, c.want)
			require.ErrorContains(t, err, EndpointEnv)
		})
	}
}

func TestStartRunsTheContainerWhereAnEngineAnswers(t *testing.T) {
	install(t, "docker")
	s := mustStart(t, Options{})
	require.NoError(t, Check(t.Context(), s.Endpoint))
}

func TestStartRunsJavaWithoutAnEngine(t *testing.T) {
	install(t, "docker", "java", "npm")
	t.Setenv(fakeDocker, "no engine")
	var notes strings.Builder
	s := mustStart(t, Options{Notes: &notes})
	require.NoError(t, Check(t.Context(), s.Endpoint))
	assert.NotContains(t, notes.String(), "Docker", "a machine without an engine is nothing to remark on")
}

func TestStartRunsJavaAndSaysSoIfTheImageCannotBeHad(t *testing.T) {
	install(t, "docker", "java", "npm")
	t.Setenv(fakeDocker, "no image")
	var notes strings.Builder
	mustStart(t, Options{Notes: &notes})
	assert.Contains(t, notes.String(), "Docker is skipped: the image "+image+" cannot be pulled")
	assert.Contains(t, notes.String(), "no route to host")
}

func TestStartSaysInOneSentenceWhatIsMissing(t *testing.T) {
	for name, c := range map[string]struct {
		programs    []string
		javaVersion string
		want        string
	}{
		"everything": {nil, "", "here there is no docker command, and there is no java command"},
		"an engine and Java": {
			[]string{"docker", "npm"}, "", "here no Docker engine answers, and there is no java command",
		},
		"a newer Java":           {[]string{"java", "npm"}, "11.0.2", "java is Java 11"},
		"a Java that tells it":   {[]string{"java", "npm"}, "none", "java does not report its version"},
		"npm, with a cold cache": {[]string{"java"}, "17", "there is no npm command, which fetches the emulator"},
	} {
		t.Run(name, func(t *testing.T) {
			install(t, c.programs...)
			t.Setenv(fakeDocker, "no engine")
			t.Setenv(fakeJavaVersion, c.javaVersion)

			_, err := start(t.Context(), Options{}, packTiny(t))

			require.ErrorContains(t, err, c.want)
			require.ErrorContains(t, err,
				"DynamoDB Local needs one of: "+EndpointEnv+" set, a Docker engine, or Java 17+ and npm")
			assert.NotContains(t, err.Error(), "\n")
		})
	}
}

func TestStartNeedsNoNpmOnceTheEmulatorIsCached(t *testing.T) {
	install(t, "java", "npm")
	mustStart(t, Options{})
	npm, err := exec.LookPath("npm")
	require.NoError(t, err)
	require.NoError(t, os.Remove(npm))
	mustStart(t, Options{})
}

func TestStartTakesAnotherPortIfItsPortIsLost(t *testing.T) {
	install(t, "docker")
	t.Setenv(fakeEmulator, "lose port")
	s := mustStart(t, Options{})
	require.NoError(t, Check(t.Context(), s.Endpoint))
}

func TestStartDoesNotMistakeAnotherEmulatorForItsOwn(t *testing.T) {
	install(t, "java", "npm")
	other := mustStart(t, Options{})
	// There is no port on which both could listen.
	t.Setenv(fakeEmulator, "lose port")

	_, err := start(t.Context(), Options{Port: portOf(t, other)}, packTiny(t))

	require.ErrorIs(t, err, errPortTaken)
}

func TestStartShowsWhatTheEmulatorPrintedBeforeItEnded(t *testing.T) {
	install(t, "java", "npm")
	t.Setenv(fakeEmulator, "crash")
	_, err := start(t.Context(), Options{}, packTiny(t))
	require.ErrorContains(t, err, "exit status 3")
	require.ErrorContains(t, err, "no sqlite4java in java.library.path")
}

func TestStartGivesUpWithItsContext(t *testing.T) {
	install(t, "java", "npm")
	t.Setenv(fakeEmulator, "hang")
	r := packTiny(t)
	ctx, cancel := context.WithCancel(t.Context())
	notes := writerFunc(func([]byte) { cancel() }) // at the first note, about the fetch
	_, err := start(ctx, Options{Notes: notes}, r)
	require.ErrorIs(t, err, context.Canceled)
}

func TestStopEndsTheEmulator(t *testing.T) {
	install(t, "java", "npm")
	s := mustStart(t, Options{})

	s.Stop()
	s.Stop()

	select {
	case <-s.Done():
	default:
		t.Fatal("the emulator must have ended when Stop returns")
	}
	require.Error(t, Check(t.Context(), s.Endpoint))
	assert.Contains(t, s.Log(), "Port:", "what it printed is kept")
}

func TestDatabaseFolderMeansAnEmulatorOfItsOwn(t *testing.T) {
	install(t, "java", "npm")
	there := httptest.NewServer(http.HandlerFunc(refuseUnsigned))
	defer there.Close()
	t.Setenv(EndpointEnv, there.URL)
	s := mustStart(t, Options{DBPath: t.TempDir()})
	assert.True(t, s.Owned())
	assert.NotEqual(t, there.URL, s.Endpoint)
}

func mustStart(t *testing.T, o Options) *Server {
	t.Helper()
	s, err := start(t.Context(), o, packTiny(t))
	require.NoError(t, err)
	t.Cleanup(s.Stop)
	return s
}

func portOf(t *testing.T, s *Server) int {
	t.Helper()
	u, err := url.Parse(s.Endpoint)
	require.NoError(t, err)
	port, err := strconv.Atoi(u.Port())
	require.NoError(t, err)
	return port
}

type writerFunc func([]byte)

func (f writerFunc) Write(b []byte) (int, error) { f(b); return len(b), nil }
