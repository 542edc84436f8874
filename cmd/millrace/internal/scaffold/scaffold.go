package scaffold

import (
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"golang.org/x/mod/modfile"
	"golang.org/x/mod/module"
)

//go:embed template
var template embed.FS

// Targets are the platforms of a service.
var Targets = []string{"fargate", "lambda"}

// Library is the module path of Millrace.
const Library = "github.com/millrace-dev/millrace"

// What the template contains in the place of the names of a service.
const (
	templateName   = "millrace-template"
	templateModule = Library + "/cmd/millrace/internal/scaffold/template"
)

// Versions of modules that Millrace itself does not require. A test compares them with those that
// the command and the examples use.
const (
	configModule = "github.com/aws/aws-sdk-go-v2/config v1.33.14"
	lambdaModule = "github.com/aws/aws-lambda-go v1.54.0"
)

// Service describes a service to write.
type Service struct {
	Name   string // of the program, and the prefix of its tables
	Module string // default: example.com/ and the name
	Dir    string // default: the name
	Target string // one of Targets

	Version string // of Millrace
	Replace string // folder of a clone of Millrace to use instead; may be empty
}

// InvalidError reports that a service cannot be written as described. Nothing was written.
type InvalidError struct{ Reason string }

func (e *InvalidError) Error() string { return e.Reason }

func invalid(format string, args ...any) error {
	return &InvalidError{fmt.Sprintf(format, args...)}
}

var (
	validName   = regexp.MustCompile(`^[a-z][a-z0-9]*(-[a-z0-9]+)*$`)
	validModule = regexp.MustCompile(`^[a-z0-9][a-zA-Z0-9._~-]*(/[a-zA-Z0-9_~][a-zA-Z0-9._~-]*)*$`)
	// reserved have a meaning of their own in paths of Go packages.
	reserved = []string{"internal", "vendor", "testdata", "main", "std", "cmd", "all"}
)

func (s *Service) complete() error {
	if len(s.Name) < 2 || len(s.Name) > 40 || !validName.MatchString(s.Name) || slices.Contains(reserved, s.Name) ||
		module.CheckImportPath(s.Name) != nil {
		return invalid("%q is not a name for a service: want 2 to 40 small letters and digits, and single dashes between them, such as ticket-shop", s.Name)
	}
	if s.Module == "" {
		s.Module = "example.com/" + s.Name
	}
	if !isModule(s.Module) || strings.HasPrefix(s.Module+"/", Library+"/") {
		return invalid("%q is not a path for a module of yours: want one such as example.com/%s", s.Module, s.Name)
	}
	if s.Dir == "" {
		s.Dir = s.Name
	}
	s.Dir = filepath.Clean(s.Dir)
	if !slices.Contains(Targets, s.Target) {
		return invalid("the target is %q: want %s", s.Target, strings.Join(Targets, " or "))
	}
	return s.completeLibrary()
}

// isModule reports whether the go command accepts the path of a module, and those of its packages.
func isModule(path string) bool {
	return validModule.MatchString(path) && module.CheckImportPath(path) == nil && !slices.Contains(reserved, path) &&
		!slices.Contains(strings.Split(path, "/"), "vendor")
}

// completeLibrary finds out how the service gets Millrace.
func (s *Service) completeLibrary() error {
	if s.Replace == "" {
		if s.Version == "" {
			return invalid("this command was built from a clone of Millrace, which has no version: pass the folder of the clone with --replace")
		}
		return nil
	}
	text, err := os.ReadFile(filepath.Join(s.Replace, "go.mod"))
	if err != nil || !strings.HasPrefix(string(text), "module "+Library+"\n") {
		folder := s.Replace
		if absolute, err := filepath.Abs(folder); err == nil {
			folder = absolute
		}
		return invalid("%s is not a clone of Millrace: want the folder with its go.mod", folder)
	}
	s.Version = "v0.1.0" // any version will do
	if filepath.IsAbs(s.Replace) {
		return nil
	}
	from, err := filepath.Abs(s.Dir)
	if err != nil {
		return err
	}
	to, err := filepath.Abs(s.Replace)
	if err != nil {
		return err
	}
	if s.Replace, err = filepath.Rel(from, to); err != nil {
		return err
	}
	if !strings.HasPrefix(s.Replace, ".") {
		s.Replace = "./" + s.Replace
	}
	return nil
}

// Write writes a service into its folder, which must be missing or empty. It returns the paths of
// the files. Errors: [*InvalidError], and those of the file system.
func Write(s Service) (written Service, files []string, err error) {
	if err := s.complete(); err != nil {
		return s, nil, err
	}
	if err := checkEmpty(s.Dir); err != nil {
		return s, nil, err
	}
	parent := filepath.Dir(s.Dir)
	if err := os.MkdirAll(parent, 0o755); err != nil { //nolint:gosec // as git does
		return s, nil, err
	}
	// The files appear when all are written.
	temporary, err := os.MkdirTemp(parent, ".millrace-init-")
	if err != nil {
		return s, nil, err
	}
	defer func() { _ = os.RemoveAll(temporary) }()
	for name, text := range s.files() {
		files = append(files, name)
		file := filepath.Join(temporary, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil { //nolint:gosec // see above
			return s, nil, err
		}
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil { //nolint:gosec // see above
			return s, nil, err
		}
	}
	slices.Sort(files)
	if err := os.Chmod(temporary, 0o755); err != nil { //nolint:gosec // see above
		return s, nil, err
	}
	return s, files, move(temporary, s.Dir)
}

// move moves a folder to a place that is missing, or an empty folder.
func move(from, to string) error {
	if _, err := os.Stat(to); errors.Is(err, fs.ErrNotExist) {
		return os.Rename(from, to)
	}
	entries, err := os.ReadDir(from)
	if err != nil {
		return err
	}
	for _, entry := range entries { // the folder may be the working directory, so it stays
		if err := os.Rename(filepath.Join(from, entry.Name()), filepath.Join(to, entry.Name())); err != nil {
			return err
		}
	}
	return nil
}

// checkEmpty returns an error unless a folder is missing or empty.
func checkEmpty(dir string) error {
	entries, err := os.ReadDir(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		if info, statErr := os.Stat(dir); statErr == nil && !info.IsDir() {
			return invalid("%s is a file: choose another name, or another folder with --dir", dir)
		}
		return err
	case len(entries) > 0:
		return invalid("the folder %s is not empty: choose another name, or another folder with --dir", dir)
	}
	return nil
}

// files returns the texts of the files, by their paths.
func (s *Service) files() map[string]string {
	files := map[string]string{"go.mod": s.goMod()}
	names := strings.NewReplacer(templateModule, s.Module, templateName, s.Name)
	// The template is in memory, so nothing can fail.
	_ = fs.WalkDir(template, "template", func(name string, entry fs.DirEntry, _ error) error {
		if entry.IsDir() {
			return nil
		}
		if at := s.place(strings.TrimPrefix(name, "template/")); at != "" {
			text, _ := template.ReadFile(name)
			files[at] = names.Replace(string(text))
		}
		return nil
	})
	return files
}

// place returns the path of a file of the template in the service, or "" if the service lacks it.
func (s *Service) place(name string) string {
	folder := path.Dir(name)
	if slices.Contains(Targets, folder) {
		if folder != s.Target {
			return ""
		}
		name = path.Base(name)
	}
	switch name {
	case "ci.yml":
		return ".github/workflows/ci.yml"
	case "gitignore":
		return ".gitignore"
	}
	return name
}

func (s *Service) goMod() string {
	required := []string{configModule, Library + " " + s.Version}
	if s.Target == "lambda" {
		required = append(required, lambdaModule)
	}
	slices.Sort(required)
	text := fmt.Sprintf("module %s\n\ngo 1.24\n\nrequire (\n\t%s\n)\n", s.Module, strings.Join(required, "\n\t"))
	if s.Replace != "" {
		text += fmt.Sprintf("\nreplace %s => %s\n", Library, modfile.AutoQuote(filepath.ToSlash(s.Replace)))
	}
	return text
}
