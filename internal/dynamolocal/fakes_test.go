package dynamolocal

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha512"
	"encoding/base64"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// The test binary replaces the programs that this package runs. A link to the binary with the name
// of a program behaves like that program, as the variables below say.
const (
	fakeJavaVersion = "FAKE_JAVA_VERSION" // the output of java -version
	// How the emulator starts: "", "crash", "hang" or "lose port".
	fakeEmulator = "FAKE_EMULATOR"
	// A file that "lose port" creates the first time, and to which npm and "record" append.
	fakeMark    = "FAKE_MARK"
	fakeArchive = "FAKE_ARCHIVE" // the archive that npm delivers
	// "", "no engine", "no image" or "record" to record its calls
	fakeDocker = "FAKE_DOCKER"
)

func TestMain(m *testing.M) {
	switch filepath.Base(os.Args[0]) {
	case "java":
		os.Exit(runJava(os.Args[1:]))
	case "docker":
		os.Exit(runDocker(os.Args[1:]))
	case "npm":
		os.Exit(runNpm())
	case "child":
		os.Exit(runChild(os.Args[1:]))
	default:
		os.Exit(m.Run())
	}
}

func runJava(args []string) int {
	if args[0] == "-version" {
		_, _ = fmt.Fprintf(os.Stderr, "openjdk version %q 2025-04-15\n", os.Getenv(fakeJavaVersion))
		return 0
	}
	return runEmulator(argument(args, "-port"), argument(args, "-cors"))
}

func runDocker(args []string) int {
	mode := os.Getenv(fakeDocker)
	if mode == "record" {
		appendToMark(strings.Join(args, " ") + "\n")
	}
	switch args[0] {
	case "info":
		if mode == "no engine" {
			return 1
		}
		fmt.Println("28.0.0")
	case "image": // inspect
		return 1
	case "pull":
		if mode == "no image" {
			_, _ = fmt.Fprintln(os.Stderr, "Error: no route to host")
			return 1
		}
	case "run":
		port := strings.Split(argument(args, "--publish"), ":")[1]
		return runEmulator(port, argument(args, "-cors"))
	}
	return 0
}

// runEmulator answers every request like DynamoDB answers one without credentials.
func runEmulator(port, origin string) int {
	fmt.Println("Port:", port)
	switch mode := os.Getenv(fakeEmulator); mode {
	case "crash":
		fmt.Println("no sqlite4java in java.library.path")
		return 3
	case "lose port":
		mark := os.Getenv(fakeMark)
		if _, err := os.Stat(mark); err != nil {
			_ = os.WriteFile(mark, nil, 0o600)
			// The real emulator prints this and hangs.
			awaitSignal("java.io.IOException: Failed to bind to 0.0.0.0/0.0.0.0:" + port)
			return 143
		}
	case "hang":
		awaitSignal("starting")
		return 143
	}
	err := http.ListenAndServe("127.0.0.1:"+port, http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if req.Header.Get("Origin") == origin {
			w.Header().Set("Access-Control-Allow-Origin", origin)
		}
		refuseUnsigned(w, req)
	}))
	fmt.Println(err)
	return 1
}

func refuseUnsigned(w http.ResponseWriter, _ *http.Request) {
	w.WriteHeader(http.StatusBadRequest)
	_, _ = io.WriteString(w, `{"__type":"com.amazonaws.dynamodb.v20120810#MissingAuthenticationToken"}`)
}

func runNpm() int {
	archive, err := os.ReadFile(os.Getenv(fakeArchive))
	if err == nil {
		err = os.WriteFile("tiny-1.0.0.tgz", archive, 0o600)
	}
	if err != nil {
		fmt.Println(err)
		return 1
	}
	appendToMark("x")
	return 0
}

func appendToMark(text string) {
	if mark, err := os.OpenFile(os.Getenv(fakeMark), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600); err == nil {
		_, _ = mark.WriteString(text)
		_ = mark.Close()
	}
}

func runChild(args []string) int {
	switch args[0] {
	case "exit":
		code, _ := strconv.Atoi(args[1])
		return code
	case "env":
		fmt.Println(os.Getenv(args[1]))
	case "kill itself":
		self, err := os.FindProcess(os.Getpid())
		if err == nil {
			err = self.Kill()
		}
		fmt.Println(err)
	case "await signal":
		awaitSignal("ready")
		return 9
	}
	return 0
}

// awaitSignal prints a line when a signal would no longer end the process by itself.
func awaitSignal(line string) {
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGTERM)
	fmt.Println(line)
	<-signals
}

func argument(args []string, name string) string {
	return args[slices.Index(args, name)+1]
}

// install makes PATH a folder with only the named programs. The rest of the environment is that of
// a machine that has never run the emulator.
func install(t *testing.T, programs ...string) {
	t.Helper()
	self, err := os.Executable()
	require.NoError(t, err)
	bin := t.TempDir()
	for _, program := range programs {
		require.NoError(t, os.Symlink(self, filepath.Join(bin, program)))
	}
	t.Setenv("PATH", bin)
	t.Setenv("JAVA_HOME", "")
	t.Setenv(EndpointEnv, "")
	t.Setenv("HOME", t.TempDir())
	t.Setenv("XDG_CACHE_HOME", "")
	t.Setenv(fakeJavaVersion, "17.0.15")
	// Otherwise a program with the race detector takes a second to exit.
	t.Setenv("GORACE", "atexit_sleep_ms=0")
	t.Setenv(fakeMark, filepath.Join(t.TempDir(), "mark"))
}

// file is an entry of an archive.
type file struct {
	name, content string
	kind          byte // of the tar entry; 0 is a regular file
}

// pack makes a release of the files, which the fake npm delivers.
func pack(t *testing.T, files ...file) release {
	t.Helper()
	archive := archiveOf(t, files...)
	path := filepath.Join(t.TempDir(), "archive.tgz")
	require.NoError(t, os.WriteFile(path, archive, 0o600))
	t.Setenv(fakeArchive, path)

	sum := sha512.Sum512(archive)
	r := release{
		pkg:       "tiny@1.0.0",
		integrity: "sha512-" + base64.StdEncoding.EncodeToString(sum[:]),
		folder:    "package/emulator/",
	}
	dir := filepath.Join(t.TempDir(), "unpacked")
	require.NoError(t, extract(bytes.NewReader(archive), r.folder, dir))
	var err error
	r.tree, err = treeDigest(dir)
	require.NoError(t, err)
	return r
}

func packTiny(t *testing.T) release {
	t.Helper()
	return pack(t,
		file{name: "package/README.md", content: "outside of the emulator"},
		file{name: "package/emulator/DynamoDBLocal.jar", content: "jar"},
		file{name: "package/emulator/DynamoDBLocal_lib/a.so", content: "library"})
}

func archiveOf(t *testing.T, files ...file) []byte {
	t.Helper()
	var b bytes.Buffer
	zipped := gzip.NewWriter(&b)
	entries := tar.NewWriter(zipped)
	for _, f := range files {
		h := &tar.Header{Name: f.name, Typeflag: tar.TypeReg, Mode: 0o644, Size: int64(len(f.content))}
		if f.kind != 0 {
			h.Typeflag, h.Size, h.Linkname = f.kind, 0, f.content
			f.content = ""
		}
		require.NoError(t, entries.WriteHeader(h))
		_, err := io.WriteString(entries, f.content)
		require.NoError(t, err)
	}
	require.NoError(t, entries.Close())
	require.NoError(t, zipped.Close())
	return b.Bytes()
}
