package dynamolocal

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
)

// javaMin is the oldest Java version with which the emulator is run.
const javaMin = 17

// jvmArgs are the arguments of the virtual machine. SQLite keeps tables in memory outside of the
// heap, which is for the requests under way. The emulator runs for minutes beside tests that need
// the processors. The first compiler and the serial collector halve its use of them.
var jvmArgs = []string{"-Xms256m", "-Xmx2g", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC"}

// startJava runs the emulator of release r. It fetches the release if the cache does not contain
// it.
func startJava(ctx context.Context, o Options, r release) (*Server, error) {
	java, err := findJava(ctx)
	if err != nil {
		return nil, err
	}
	cache, err := cacheDir()
	if err != nil {
		return nil, err
	}
	dir, err := r.ensure(ctx, cache, o)
	if err != nil {
		return nil, err
	}
	dbPath := o.DBPath
	if dbPath != "" {
		if dbPath, err = filepath.Abs(dbPath); err != nil {
			return nil, fmt.Errorf("database folder: %w", err)
		}
	}
	// The emulator writes a file into its working folder, and so does a virtual machine that
	// crashes. Neither may write into the verified cache.
	work, err := os.MkdirTemp("", "millrace-dynamodb-")
	if err != nil {
		return nil, fmt.Errorf("make a working folder for DynamoDB Local: %w", err)
	}
	remove := func() { _ = os.RemoveAll(work) }
	s, err := launch(ctx, o.Port, func(port int, origin string) *exec.Cmd {
		args := slices.Concat(jvmArgs, []string{
			"-Djava.library.path=" + filepath.Join(dir, "DynamoDBLocal_lib"), "-jar", filepath.Join(dir, "DynamoDBLocal.jar"),
		}, emulatorArgs(port, origin, dbPath))
		cmd := exec.Command(java, args...)
		cmd.Dir = work
		return cmd
	})
	if err != nil {
		remove()
		return nil, err
	}
	s.remove = remove
	s.again = func(ctx context.Context) (*Server, error) {
		o.Port = s.port
		return startJava(ctx, o, r)
	}
	return s, nil
}

// findJava returns the java command of JAVA_HOME or else of PATH, the first that is recent enough.
func findJava(ctx context.Context) (string, error) {
	var candidates []string
	if home := os.Getenv("JAVA_HOME"); home != "" {
		candidates = append(candidates, filepath.Join(home, "bin", "java"))
	}
	candidates = append(candidates, "java")

	reason := missingError("there is no java command")
	for _, candidate := range candidates {
		java, err := exec.LookPath(candidate)
		if err != nil {
			continue
		}
		out, err := exec.CommandContext(ctx, java, "-version").CombinedOutput()
		if ctx.Err() != nil {
			return "", ctx.Err()
		}
		version, ok := parseJavaVersion(string(out))
		switch {
		case err != nil || !ok: // for example the stub of macOS, which only asks to install Java
			reason = missingError(fmt.Sprintf("%s does not report its version", java))
		case version < javaMin:
			reason = missingError(fmt.Sprintf("%s is Java %d", java, version))
		default:
			return java, nil
		}
	}
	return "", reason
}

// javaVersion matches the line of `java -version` with the version, which is 1.N before Java 9.
var javaVersion = regexp.MustCompile(`(?m)^\S+ version "(?:1\.)?(\d+)`)

// parseJavaVersion returns the major version in the output of `java -version`.
func parseJavaVersion(out string) (major int, ok bool) {
	m := javaVersion.FindStringSubmatch(out)
	if m == nil {
		return 0, false
	}
	major, err := strconv.Atoi(m[1])
	return major, err == nil
}
