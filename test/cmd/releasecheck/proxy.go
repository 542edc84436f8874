package main

import (
	"archive/zip"
	"bytes"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"time"

	"golang.org/x/mod/module"
	"golang.org/x/mod/sumdb/dirhash"
	modzip "golang.org/x/mod/zip"
)

// proxy is a folder in the layout of the module proxy protocol.
type proxy string

// url returns the proxy in the form of GOPROXY.
func (p proxy) url() string { return "file://" + filepath.ToSlash(string(p)) }

// name returns the file of the proxy for a version of a module.
func (p proxy) name(modulePath, version, suffix string) (string, error) {
	escaped, err := module.EscapePath(modulePath)
	return filepath.Join(string(p), filepath.FromSlash(escaped), "@v", version+suffix), err
}

// add publishes a module.
func (p proxy) add(m *released, version string) error {
	var archive bytes.Buffer
	if err := writeZip(&archive, m, version); err != nil {
		return err
	}
	info := fmt.Sprintf(`{"Version":%q,"Time":%q}`, version, time.Unix(0, 0).UTC().Format(time.RFC3339))
	for suffix, content := range map[string][]byte{".info": []byte(info), ".mod": m.files["go.mod"], ".zip": archive.Bytes()} {
		name, err := p.name(m.path, version, suffix)
		if err != nil {
			return err
		}
		if err := writeFile(name, content); err != nil {
			return err
		}
	}
	list, err := p.name(m.path, "list", "")
	if err != nil {
		return err
	}
	return writeFile(list, []byte(version+"\n"))
}

// sums returns the lines of go.sum for a version of a module.
func (p proxy) sums(modulePath, version string) ([]string, error) {
	archive, err := p.name(modulePath, version, ".zip")
	if err != nil {
		return nil, err
	}
	whole, err := dirhash.HashZip(archive, dirhash.Hash1)
	if err != nil {
		return nil, err
	}
	mod, err := p.name(modulePath, version, ".mod")
	if err != nil {
		return nil, err
	}
	file, err := dirhash.Hash1([]string{"go.mod"}, func(string) (io.ReadCloser, error) { return os.Open(mod) })
	if err != nil {
		return nil, err
	}
	return []string{modulePath + " " + version + " " + whole, modulePath + " " + version + "/go.mod " + file}, nil
}

// writeZip checks the rules of the go command for the zip of a module: its contents, its size and
// the names in it.
func writeZip(w io.Writer, m *released, version string) error {
	var files []modzip.File
	for _, name := range slices.Sorted(maps.Keys(m.files)) {
		files = append(files, zipFile{name: name, content: m.files[name]})
	}
	if err := modzip.Create(w, module.Version{Path: m.path, Version: version}, files); err != nil {
		return fmt.Errorf("zip %s: %w", m.path, err)
	}
	return nil
}

// zipFile is a modzip.File.
type zipFile struct {
	name    string
	content []byte
}

func (f zipFile) Path() string { return f.name }

func (f zipFile) Lstat() (fs.FileInfo, error) {
	header := &zip.FileHeader{Name: f.name, UncompressedSize64: uint64(len(f.content))}
	header.SetMode(0o644)
	return header.FileInfo(), nil
}

func (f zipFile) Open() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(f.content)), nil }
