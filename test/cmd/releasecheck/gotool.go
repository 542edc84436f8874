package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/mod/module"
)

// goTool is the go command without a workspace. It finds the two modules of this repository in a
// proxy in a folder, and other modules in the module cache or in the configured proxy.
type goTool struct {
	env   []string
	cache string // GOMODCACHE
}

func newGoTool(ctx context.Context, own proxy) (goTool, error) {
	printed, err := run(ctx, "", nil, "go", "env", "-json", "GOPROXY", "GONOSUMDB", "GOMODCACHE")
	if err != nil {
		return goTool{}, err
	}
	var configured struct{ GOPROXY, GONOSUMDB, GOMODCACHE string }
	if err := json.Unmarshal([]byte(printed), &configured); err != nil {
		return goTool{}, fmt.Errorf("go env: %w", err)
	}
	return goTool{cache: configured.GOMODCACHE}.with(
		"GOWORK=off",
		"GOPROXY="+own.url()+","+withoutDirect(configured.GOPROXY),
		"GOPRIVATE=", "GONOPROXY=", // the modules of this repository are in the proxy
		"GONOSUMDB="+strings.Trim(configured.GONOSUMDB+","+rootPath, ","),
	), nil
}

// withoutDirect removes direct from GOPROXY, so that the go command asks only proxies. It looks for
// a module at each prefix of a package's path, and should not look for repositories that do not
// exist.
func withoutDirect(proxies string) string {
	if shorter := strings.NewReplacer(",direct", "", "|direct", "").Replace(proxies); shorter != "" {
		return shorter
	}
	return "off"
}

func (g goTool) with(env ...string) goTool {
	g.env = append(slices.Clip(g.env), env...)
	return g
}

func (g goTool) run(ctx context.Context, folder string, args ...string) (string, error) {
	return run(ctx, folder, g.env, "go", args...)
}

// forget removes a version of a module from the module cache.
func (g goTool) forget(modulePath, version string) error {
	escaped, err := module.EscapePath(modulePath)
	if err != nil {
		return err
	}
	sources := filepath.Join(g.cache, filepath.FromSlash(escaped)+"@"+version)
	// Its folders are read-only. Files in them can only be removed after a change of their mode.
	err = filepath.WalkDir(sources, func(name string, entry fs.DirEntry, err error) error {
		if err == nil && entry.IsDir() {
			err = os.Chmod(name, 0o755)
		}
		return err
	})
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	versions := filepath.Join(g.cache, "cache", "download", filepath.FromSlash(escaped), "@v")
	downloads, err := filepath.Glob(filepath.Join(versions, version+".*"))
	for _, name := range append(downloads, sources) {
		err = errors.Join(err, os.RemoveAll(name))
	}
	return errors.Join(err, removeLine(filepath.Join(versions, "list"), version))
}

// removeLine removes a line from a file. If it was the last line, removeLine removes the file.
func removeLine(name, line string) error {
	content, err := os.ReadFile(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	lines := slices.DeleteFunc(strings.Split(strings.TrimSpace(string(content)), "\n"), func(l string) bool { return l == line })
	if len(lines) == 0 {
		return os.Remove(name)
	}
	return os.WriteFile(name, []byte(strings.Join(lines, "\n")+"\n"), 0o644)
}

// run runs a command and returns its output. The error contains the output too.
func run(ctx context.Context, folder string, env []string, name string, args ...string) (string, error) {
	command := exec.CommandContext(ctx, name, args...)
	command.Dir, command.Env = folder, append(os.Environ(), env...)
	var stdout, stderr bytes.Buffer
	command.Stdout, command.Stderr = &stdout, &stderr
	if err := command.Run(); err != nil {
		return "", fmt.Errorf("%s: %w\n%s%s", strings.Join(command.Args, " "), err, stdout.String(), stderr.String())
	}
	return stdout.String(), nil
}
