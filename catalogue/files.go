package catalogue

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

const (
	indexFile    = "README.md"
	asyncAPIFile = "asyncapi.json"
)

// nameFiles chooses the files of the schemas.
func (c *Catalogue) nameFiles() {
	var names []string
	for _, a := range c.aggregates {
		names = append(names, a.name)
	}
	folders := uniqueNames(names, fileName)
	for _, a := range c.aggregates {
		folder := "aggregates/" + folders[a.name]
		a.page = folder + ".md"
		a.state.file = folder + "/state.json"
		names = nil
		for _, e := range append(slices.Clone(a.events), a.upcasters...) {
			names = append(names, e.Event)
		}
		files := uniqueNames(names, fileName)
		for _, e := range a.events {
			e.file = folder + "/events/" + files[e.Event] + ".json"
		}
		for _, e := range a.upcasters {
			e.file = folder + "/events/" + files[e.Event] + ".json"
		}
	}
	names = nil
	for _, channel := range c.channels {
		names = append(names, channel.Name)
	}
	folders = uniqueNames(names, fileName)
	for _, channel := range c.channels {
		folder := "channels/" + folders[channel.Name]
		channel.page = folder + ".md"
		names = nil
		for _, e := range channel.messages {
			names = append(names, e.versioned())
		}
		files := uniqueNames(names, fileName)
		for _, e := range channel.messages {
			e.file = folder + "/" + files[e.versioned()] + ".json"
		}
	}
}

// versioned returns the name of a message with its version.
func (a about) versioned() string { return fmt.Sprintf("%s.v%d", a.Message, a.Version) }

// Files returns the content of the files by their paths in the folder of the catalogue, with
// slashes. They are the same for the same configuration. [Catalogue.Write] adds to them what the
// committed files describe of the stored events that upcasters read.
//
//   - README.md lists the aggregates and channels.
//   - asyncapi.json is the AsyncAPI 3.0 document. It contains all schemas.
//   - aggregates/NAME.md describes an aggregate for readers. The folder aggregates/NAME holds its
//     JSON Schemas: state.json, and one in the folder events for each event type.
//   - channels/NAME.md describes a channel that the application has declared. The folder
//     channels/NAME holds the JSON Schemas of its messages.
func (c *Catalogue) Files() (map[string][]byte, error) {
	files := map[string][]byte{}
	for _, e := range c.all() {
		files[e.file] = e.document
	}
	data, err := document(c.asyncAPI())
	if err != nil {
		return nil, fmt.Errorf("catalogue: encode the AsyncAPI document: %w", err)
	}
	files[asyncAPIFile] = data
	files[indexFile] = c.index()
	for _, a := range c.aggregates {
		files[a.page] = c.aggregatePage(a)
	}
	for _, channel := range c.channels {
		files[channel.page] = c.channelPage(channel)
	}
	return files, nil
}

// Write writes the catalogue of an application into a folder, which it creates. Call it from the
// application's program, for example for a flag, or in a test with package cataloguetest.
//
// Write compares the catalogue with the files that are there. It writes nothing and returns an
// [*IncompatibleError] if a change breaks readers of stored events, or consumers. It removes files
// of events that the catalogue no longer has. It returns notes: compatible changes after which
// something must be done. Show them, since a later comparison does not find them again.
//
// Errors: those of [New]; [*IncompatibleError]; [*FileError]; those of the file system.
func Write(dir string, config Config) (notes []Change, err error) {
	c, err := New(config)
	if err != nil {
		return nil, err
	}
	return c.Write(dir)
}

// Write is like the function [Write].
func (c *Catalogue) Write(dir string) (notes []Change, err error) {
	difference, files, err := c.compare(dir)
	if err != nil {
		return nil, err
	}
	if len(difference.Incompatible) > 0 {
		return nil, &IncompatibleError{Dir: dir, Changes: difference.Incompatible}
	}
	for _, name := range difference.Stale {
		path := filepath.Join(dir, filepath.FromSlash(name))
		data, wanted := files[name]
		if !wanted {
			if err := os.Remove(path); err != nil {
				return nil, fmt.Errorf("catalogue: %w", err)
			}
			continue
		}
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil { //nolint:gosec // documentation, for all readers
			return nil, fmt.Errorf("catalogue: %w", err)
		}
		if err := os.WriteFile(path, data, 0o644); err != nil { //nolint:gosec // documentation, for all readers
			return nil, fmt.Errorf("catalogue: %w", err)
		}
	}
	return difference.Notes, nil
}

// generatedMark is in each page that this package writes. Schemas have the keyword x-millrace.
const generatedMark = "<!-- Written by package catalogue of Millrace. Do not edit. -->"

// readFiles returns the files in a folder that this package has written, by their paths.
func readFiles(dir string) (map[string][]byte, error) {
	files := map[string][]byte{}
	for _, top := range []string{indexFile, asyncAPIFile, "aggregates", "channels"} {
		err := filepath.WalkDir(filepath.Join(dir, top), func(path string, file fs.DirEntry, err error) error {
			if errors.Is(err, fs.ErrNotExist) && path == filepath.Join(dir, top) {
				return nil
			}
			if err != nil || file.IsDir() {
				return err
			}
			data, err := os.ReadFile(path) //nolint:gosec // the folder is that of the caller
			if err != nil {
				return err
			}
			name, err := filepath.Rel(dir, path)
			if err != nil {
				return err
			}
			name = filepath.ToSlash(name)
			text := string(data)
			if name == asyncAPIFile || strings.HasSuffix(name, ".json") || strings.Contains(text, generatedMark) {
				// Git may have changed the ends of lines.
				files[name] = []byte(strings.ReplaceAll(text, "\r\n", "\n"))
			}
			return nil
		})
		if err != nil {
			return nil, fmt.Errorf("catalogue: read the committed files: %w", err)
		}
	}
	return files, nil
}
