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

// image is the release that the npm package holds too, so that both sources behave alike.
const image = "amazon/dynamodb-local:1.25.1"

// dockerTimeout bounds the question whether an engine answers: a client whose engine is far away or
// suspended would wait for a minute.
const dockerTimeout = 5 * time.Second

// startDocker runs the emulator in a container that the docker client stays attached to: what ends
// the client ends the container, and --rm removes it.
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

	var name string // of the last container tried
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
		// Only a client that had to be killed leaves its container; "no such container" is the
		// usual answer.
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), dockerTimeout)
		defer cancel()
		_ = exec.CommandContext(ctx, docker, "rm", "--force", name).Run()
	}
	if err != nil {
		remove()
		return nil, err
	}
	// The client does not pass SIGKILL on, and removing by force is the same signal to the
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
	// The format matters: without it some clients print what they know of themselves and exit with
	// 0.
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
		return fmt.Errorf("the image %s cannot be had: %w: %s", image, err, lastLine(out))
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
		// The image's own user could not write to the folder, and root would leave files that the
		// caller cannot remove.
		s.run = append(s.run, "--user", strconv.Itoa(uid)+":"+strconv.Itoa(os.Getgid()))
	}
	return s, nil
}

// emulatorArgs are the arguments of the emulator itself, whoever runs it.
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
