package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"
)

const (
	rootPath    = "github.com/millrace-dev/millrace"
	commandPath = rootPath + "/" + commandFolder

	commandFolder = "cmd/millrace"
)

// rehearsal is one run. Its temporary folder is empty at first.
type rehearsal struct {
	repository string // absolute
	folder     string // absolute, temporary
	version    string // of both modules
	root       *released
	command    *released
	proxy      proxy
	goTool     goTool
}

// rehearse runs all steps of a release.
func rehearse(ctx context.Context, repository string, out io.Writer) error {
	return prepare(ctx, repository, func(r *rehearsal) error {
		_, _ = fmt.Fprintln(out, "rehearsing", rootPath, r.version)
		for _, step := range []struct {
			name string
			run  func(context.Context) error
		}{
			{"the modules contain only what may be released", func(context.Context) error { return errors.Join(r.root.validate(), r.command.validate()) }},
			{"the root module is tidy and builds by itself", func(ctx context.Context) error { return r.check(ctx, r.repository) }},
			{"the root module is published", func(context.Context) error { return r.proxy.add(r.root, r.version) }},
			{"cmd/millrace is tidy and builds with that version", r.checkCommand},
			{"cmd/millrace is published", func(context.Context) error { return r.proxy.add(r.command, r.version) }},
			{"a new module runs the quickstart and compiles the Go code of README", r.shop},
			{"the command can be installed", r.install},
			{"a service of millrace init is built with that version", r.service},
		} {
			start := time.Now()
			if err := step.run(ctx); err != nil {
				return fmt.Errorf("check failed: %s:\n%w", step.name, err)
			}
			_, _ = fmt.Fprintf(out, "%5.1fs  %s\n", time.Since(start).Seconds(), step.name)
		}
		return nil
	})
}

// tidy tidies cmd/millrace. go mod tidy cannot do that while the required version of the root
// module has no tag.
func tidy(ctx context.Context, repository string) error {
	return prepare(ctx, repository, func(r *rehearsal) error {
		if err := r.proxy.add(r.root, r.version); err != nil {
			return err
		}
		before := r.command.clone()
		folder, err := r.raise()
		if err != nil {
			return err
		}
		modfile := filepath.Join(folder, "go.mod")
		if _, err := r.goTool.run(ctx, filepath.Join(r.repository, before.folder), "mod", "tidy", "-modfile="+modfile); err != nil {
			return err
		}
		tidied := before.clone()
		for _, name := range []string{"go.mod", "go.sum"} {
			if tidied.files[name], err = os.ReadFile(filepath.Join(folder, name)); err != nil {
				return err
			}
		}
		version, sums, err := before.required(rootPath)
		if err != nil {
			return err
		}
		if err := tidied.require(rootPath, version, sums); err != nil {
			return err
		}
		for _, name := range []string{"go.mod", "go.sum"} {
			if err := writeFile(filepath.Join(r.repository, before.folder, name), tidied.files[name]); err != nil {
				return err
			}
		}
		return nil
	})
}

// prepare reads the modules and makes a proxy. At the end, it removes the files that the rehearsal
// has left on the machine.
func prepare(ctx context.Context, repository string, do func(*rehearsal) error) (err error) {
	r := &rehearsal{}
	if r.repository, err = filepath.Abs(repository); err != nil {
		return err
	}
	if r.folder, err = os.MkdirTemp("", "releasecheck-"); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(r.folder)) }()
	r.proxy = proxy(filepath.Join(r.folder, "proxy"))
	if r.goTool, err = newGoTool(ctx, r.proxy); err != nil {
		return err
	}
	if r.root, err = readModule(ctx, r.repository, "."); err != nil {
		return err
	}
	if r.command, err = readModule(ctx, r.repository, commandFolder); err != nil {
		return err
	}
	r.version = rehearsalVersion(r.root, r.command)
	defer func() {
		err = errors.Join(err, r.goTool.forget(rootPath, r.version), r.goTool.forget(commandPath, r.version))
	}()
	return do(r)
}

// check builds a module and its tests without a workspace. Its go.mod and go.sum must be complete
// and minimal.
func (r *rehearsal) check(ctx context.Context, folder string, flags ...string) error {
	if _, err := r.goTool.run(ctx, folder, append([]string{"mod", "tidy", "-diff"}, flags...)...); err != nil {
		return fmt.Errorf("%w\nrun make tidy", err)
	}
	// The list includes all that tests import. Later phases compile the tests.
	for _, args := range [][]string{{"build"}, {"list", "-test", "-deps"}} {
		if _, err := r.goTool.run(ctx, folder, append(append(args, flags...), "./...")...); err != nil {
			return err
		}
	}
	return nil
}

// raise does what a release does to cmd/millrace when the root has a tag: it requires that version.
// The files in the working tree do not change: the go command reads go.mod and go.sum from the
// folder that raise returns.
func (r *rehearsal) raise() (folder string, err error) {
	sums, err := r.proxy.sums(rootPath, r.version)
	if err != nil {
		return "", err
	}
	if err := r.command.require(rootPath, r.version, sums); err != nil {
		return "", err
	}
	folder = filepath.Join(r.folder, "raised")
	for _, name := range []string{"go.mod", "go.sum"} {
		if err := writeFile(filepath.Join(folder, name), r.command.files[name]); err != nil {
			return "", err
		}
	}
	return folder, nil
}

func (r *rehearsal) checkCommand(ctx context.Context) error {
	folder, err := r.raise()
	if err != nil {
		return err
	}
	return r.check(ctx, filepath.Join(r.repository, commandFolder), "-modfile="+filepath.Join(folder, "go.mod"))
}

// shop builds a new module that uses the library: the quickstart, and a package for each Go snippet
// of README.
func (r *rehearsal) shop(ctx context.Context) error {
	quickstart, err := os.ReadFile(filepath.Join(r.repository, "examples/quickstart/main.go"))
	if err != nil {
		return err
	}
	readme, err := os.ReadFile(filepath.Join(r.repository, "README.md"))
	if err != nil {
		return err
	}
	snippets, err := goSnippets(readme)
	if err != nil {
		return fmt.Errorf("the Go code of README.md: %w", err)
	}
	shop := filepath.Join(r.folder, "shop")
	sources := map[string][]byte{"main.go": quickstart}
	for n, snippet := range snippets {
		sources[fmt.Sprintf("snippet%d/main.go", n+1)] = snippet
	}
	for name, source := range sources {
		if err := writeFile(filepath.Join(shop, name), source); err != nil {
			return err
		}
	}
	for _, args := range [][]string{
		{"mod", "init", "example.com/shop"},
		{"get", rootPath + "@" + r.version},
		{"mod", "tidy"},
		{"vet", "./..."},
	} {
		if _, err := r.goTool.run(ctx, shop, args...); err != nil {
			return err
		}
	}
	printed, err := r.goTool.run(ctx, shop, "run", ".")
	if err == nil && !strings.Contains(printed, "balance: 70\n") {
		err = fmt.Errorf("the quickstart printed %q", printed)
	}
	return err
}

// install installs the command from a folder without a module, and runs it.
func (r *rehearsal) install(ctx context.Context) error {
	bin := filepath.Join(r.folder, "bin")
	if _, err := r.goTool.with("GOBIN="+bin).run(ctx, r.folder, "install", commandPath+"@"+r.version); err != nil {
		return err
	}
	for flag, want := range map[string]string{"--help": "Usage:", "--version": r.version} {
		printed, err := run(ctx, r.folder, nil, filepath.Join(bin, "millrace"), flag)
		if err != nil {
			return err
		}
		if !strings.Contains(printed, want) {
			return fmt.Errorf("millrace %s printed %q, which lacks %q", flag, printed, want)
		}
	}
	return nil
}

// service has the installed command write services, and builds them.
func (r *rehearsal) service(ctx context.Context) error {
	for _, target := range []string{"fargate", "lambda"} {
		folder := filepath.Join(r.folder, target)
		if _, err := run(ctx, r.folder, nil, filepath.Join(r.folder, "bin", "millrace"), "init", "shop", "--target", target, "--dir", folder); err != nil {
			return err
		}
		for _, args := range [][]string{{"mod", "tidy"}, {"vet", "./..."}} {
			if _, err := r.goTool.run(ctx, folder, args...); err != nil {
				return err
			}
		}
	}
	return nil
}

func writeFile(name string, content []byte) error {
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		return err
	}
	return os.WriteFile(name, content, 0o644)
}
