package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/mod/modfile"
	"golang.org/x/mod/module"
)

// maxFile is the size limit of a released file.
const maxFile = 1 << 20

// released is a module as it would be released.
type released struct {
	path   string
	folder string            // in the repository, with slashes
	files  map[string][]byte // by their names in the module
}

// readModule reads the files that a tag of the working tree would contain: the files that git
// tracks and those that it would add, without those of nested modules. As in a release, a nested
// module without a license gets the license of the repository.
func readModule(ctx context.Context, repository, folder string) (*released, error) {
	listed, err := run(ctx, filepath.Join(repository, folder), nil, "git", "ls-files", "-z", "--cached", "--others", "--exclude-standard")
	if err != nil {
		return nil, err
	}
	names := strings.Split(strings.TrimSuffix(listed, "\x00"), "\x00")
	names = slices.DeleteFunc(names, func(name string) bool { return isNested(names, name) })
	m := &released{folder: folder, files: map[string][]byte{}}
	for _, name := range names {
		content, err := os.ReadFile(filepath.Join(repository, folder, name))
		if errors.Is(err, fs.ErrNotExist) {
			continue // deleted and not committed
		}
		if err != nil {
			return nil, err
		}
		m.files[name] = content
	}
	if _, ok := m.files["LICENSE"]; !ok {
		if m.files["LICENSE"], err = os.ReadFile(filepath.Join(repository, "LICENSE")); err != nil {
			return nil, err
		}
	}
	m.path = modfile.ModulePath(m.files["go.mod"])
	return m, nil
}

// isNested reports whether a file belongs to a module in a folder below.
func isNested(names []string, name string) bool {
	for folder := path.Dir(name); folder != "."; folder = path.Dir(folder) {
		if slices.Contains(names, folder+"/go.mod") {
			return true
		}
	}
	return false
}

// rehearsalVersion returns a version that no other content has had, since the module cache keeps
// the content of a version.
func rehearsalVersion(modules ...*released) string {
	hash := sha256.New()
	for _, m := range modules {
		for _, name := range slices.Sorted(maps.Keys(m.files)) {
			_, _ = fmt.Fprintf(hash, "%s %q %x\n", m.path, name, sha256.Sum256(m.files[name]))
		}
	}
	return fmt.Sprintf("v0.0.0-rehearsal.h%x", hash.Sum(nil)[:8])
}

// validate returns an error for content that must not be released.
func (m *released) validate() error {
	file, err := modfile.Parse("go.mod", m.files["go.mod"], nil)
	if err != nil {
		return err
	}
	if len(file.Replace) > 0 || len(file.Exclude) > 0 {
		return fmt.Errorf("%s/go.mod has replace or exclude directives: go install refuses such a module", m.folder)
	}
	for name, content := range m.files {
		if path.Base(name) == "go.mod" && name != "go.mod" {
			return fmt.Errorf("%s contains another module, %s", m.path, name)
		}
		if len(content) > maxFile {
			return fmt.Errorf("%s has %d bytes, more than %d: each user would download it", name, len(content), maxFile)
		}
	}
	return nil
}

func (m *released) clone() *released {
	return &released{path: m.path, folder: m.folder, files: maps.Clone(m.files)}
}

// required returns the version of a module that this one requires, and its lines in go.sum.
func (m *released) required(modulePath string) (version string, sums []string, err error) {
	file, err := modfile.Parse("go.mod", m.files["go.mod"], nil)
	if err != nil {
		return "", nil, err
	}
	for _, required := range file.Require {
		if required.Mod.Path == modulePath {
			version = required.Mod.Version
		}
	}
	for line := range strings.Lines(string(m.files["go.sum"])) {
		if strings.HasPrefix(line, modulePath+" ") {
			sums = append(sums, strings.TrimSuffix(line, "\n"))
		}
	}
	return version, sums, nil
}

// require makes the module require a version of another one, with these lines in go.sum.
func (m *released) require(modulePath, version string, sums []string) error {
	file, err := modfile.Parse("go.mod", m.files["go.mod"], nil)
	if err != nil {
		return err
	}
	if err := file.AddRequire(modulePath, version); err != nil {
		return err
	}
	if m.files["go.mod"], err = file.Format(); err != nil {
		return err
	}
	lines := strings.Split(string(bytes.TrimSpace(m.files["go.sum"])), "\n")
	lines = slices.DeleteFunc(lines, func(line string) bool { return strings.HasPrefix(line, modulePath+" ") })
	lines = append(lines, sums...)
	m.files["go.sum"] = []byte(strings.Join(inOrderOfTidy(lines), "\n") + "\n")
	return nil
}

// inOrderOfTidy sorts the lines of a go.sum as go mod tidy does.
func inOrderOfTidy(lines []string) []string {
	modules, byModule := make([]module.Version, len(lines)), map[module.Version]string{}
	for i, line := range lines {
		modulePath, rest, _ := strings.Cut(line, " ")
		version, _, _ := strings.Cut(rest, " ")
		modules[i] = module.Version{Path: modulePath, Version: version}
		byModule[modules[i]] = line
	}
	module.Sort(modules)
	sorted := make([]string, len(lines))
	for i, m := range modules {
		sorted[i] = byModule[m]
	}
	return sorted
}
