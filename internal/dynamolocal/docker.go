package dynamolocal

import (
	"context"
	"crypto/rand"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// image is the same release as the one in the npm package, so that both sources behave alike.
const image = "amazon/dynamodb-local:1.25.1"

// dockerTimeout limits the check whether an engine answers. The docker client would wait for a
// minute if its engine is remote or suspended.
const dockerTimeout = 5 * time.Second

// startDocker runs the emulator in a container to which the docker client stays attached. When the
// client ends, the container ends too, and --rm removes it.
func startDocker(ctx context.Context, o Options) (*Server, error) {
	docker, err := exec.LookPath("docker")
	if err != nil {
		return nil, missingError("there is no docker command")
	}
	if !dockerAnswers(ctx, docker) {
		return nil, missingError("no Docker engine answers")
	}
	if err := ensureImage(ctx, docker, o); err != nil {
		return nil, err
	}
	args, err := dockerStorage(o)
	if err != nil {
		return nil, err
	}

	var name string // of the last container that was tried
	s, err := launch(ctx, o.Port, func(port int, origin string) *exec.Cmd {
		name = "millrace-dynamodb-" + strings.ToLower(rand.Text())
		run := []string{"run", "--rm", "--name", name, "--publish", "127.0.0.1:" + strconv.Itoa(port) + ":8000"}
		run = append(run, args.run...)
		run = append(append(run, image), jvmArgs...)
		run = append(run, "-Djava.library.path=./DynamoDBLocal_lib", "-jar", "DynamoDBLocal.jar")
		run = append(run, emulatorArgs(8000, origin, args.dbPath)...)
		return exec.Command(docker, run...)
	})
	remove := func() {
		// A container is left only if its client had to be killed. Usually the answer is "no such
		// container".
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), dockerTimeout)
		defer cancel()
		_ = exec.CommandContext(ctx, docker, "rm", "--force", name).Run()
	}
	if err != nil {
		remove()
		return nil, err
	}
	// The client does not pass SIGKILL on. Removing by force sends the same signal to the
	// container.
	s.kill, s.remove = remove, remove
	s.again = func(ctx context.Context) (*Server, error) {
		o.Port = s.port
		return startDocker(ctx, o)
	}
	return s, nil
}

func dockerAnswers(ctx context.Context, docker string) bool {
	ctx, cancel := context.WithTimeout(ctx, dockerTimeout)
	defer cancel()
	// The format is needed: without it some clients print information about themselves and exit
	// with 0.
	version, err := exec.CommandContext(ctx, docker, "info", "--format", "{{.ServerVersion}}").Output()
	return err == nil && strings.TrimSpace(string(version)) != ""
}

func ensureImage(ctx context.Context, docker string, o Options) error {
	if exec.CommandContext(ctx, docker, "image", "inspect", image).Run() == nil {
		return nil
	}
	o.notef("pulling the image %s (once)", image)
	out, err := exec.CommandContext(ctx, docker, "pull", "--quiet", image).CombinedOutput()
	if err != nil {
		return fmt.Errorf("the image %s cannot be pulled: %w: %s", image, err, lastLine(out))
	}
	return nil
}

type storage struct {
	run    []string // arguments of docker run
	dbPath string   // inside the container
}

func dockerStorage(o Options) (storage, error) {
	if o.DBPath == "" {
		return storage{}, nil
	}
	host, err := filepath.Abs(o.DBPath)
	if err != nil {
		return storage{}, fmt.Errorf("database folder: %w", err)
	}
	s := storage{run: []string{"--volume", host + ":/data"}, dbPath: "/data"}
	if uid := os.Getuid(); uid >= 0 {
		// The image's own user could not write to the folder. The root user would leave files that
		// the caller cannot remove.
		s.run = append(s.run, "--user", strconv.Itoa(uid)+":"+strconv.Itoa(os.Getgid()))
	}
	return s, nil
}

// emulatorArgs returns the arguments of the emulator itself, for Docker and Java.
func emulatorArgs(port int, origin, dbPath string) []string {
	args := []string{"-port", strconv.Itoa(port), "-cors", origin, "-disableTelemetry"}
	if dbPath == "" {
		return append(args, "-inMemory")
	}
	return append(args, "-dbPath", dbPath)
}

func lastLine(out []byte) string {
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	return lines[len(lines)-1]
}
