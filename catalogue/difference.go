package catalogue

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Change is a change of an event, a state or a message since the committed catalogue.
type Change struct {
	Subject string // what has changed, such as: event type "paid.v1" of aggregate type "order"
	Field   string // the path of the field by JSON names; empty if no single field has changed
	What    string // the change
	Why     string // what it breaks
	Fix     string // what to do
	// File is the committed file, or the folder of an aggregate type, in the folder of the
	// catalogue. To accept the change, delete it.
	File string
}

// String returns the whole text of a change.
func (c Change) String() string {
	return fmt.Sprintf("%s: %s: %s. To fix it, %s.", c.Subject, c.What, c.Why, c.Fix)
}

// IncompatibleError reports changes that break readers of stored events, or consumers.
type IncompatibleError struct {
	Dir     string   // the folder of the catalogue
	Changes []Change // at least one
}

func (e *IncompatibleError) Error() string {
	var out strings.Builder
	fmt.Fprintf(&out, "catalogue: incompatible with the catalogue in %s, so no file was written:", e.Dir)
	for _, change := range e.Changes {
		fmt.Fprintf(&out, "\n- %s", change)
	}
	return out.String() + "\nTo accept all changes of these files, for example because nothing of their types was ever stored or sent, delete them, " +
		"and write the catalogue again: " + strings.Join(e.files(), ", ")
}

// files returns the files and folders of the changes.
func (e *IncompatibleError) files() (files []string) {
	for _, change := range e.Changes {
		if name := filepath.Join(e.Dir, filepath.FromSlash(change.File)); !slices.Contains(files, name) {
			files = append(files, name)
		}
	}
	return files
}

// FileError reports a file in the place of one of the catalogue that is not as this package writes
// it. Nothing was changed.
type FileError struct {
	File string // the path in the folder of the catalogue
	Err  error  // why it cannot be read
}

func (e *FileError) Error() string {
	return fmt.Sprintf("catalogue: %s is not a file of a catalogue: restore it from version control, "+
		"or delete it and write the catalogue again: %v", e.File, e.Err)
}

func (e *FileError) Unwrap() error { return e.Err }

// Difference compares a catalogue with the committed files.
type Difference struct {
	// Incompatible are the changes that break readers of stored events, or consumers.
	Incompatible []Change
	// Notes are compatible changes after which something must be done, and committed pages whose
	// schemas are missing.
	Notes []Change
	// Stale are the paths of the files that Write would write or remove.
	Stale []string
	// Missing reports that the folder holds no catalogue.
	Missing bool
}

// Compare compares the catalogue with the files in a folder. It changes nothing.
//
// Errors: [*FileError]; those of the file system.
func (c *Catalogue) Compare(dir string) (Difference, error) {
	d, _, err := c.compare(dir)
	return d, err
}

// compare returns also the files as they must be: the schemas of stored events are taken from the
// committed files.
func (c *Catalogue) compare(dir string) (d Difference, now map[string][]byte, err error) {
	before, err := readFiles(dir)
	if err != nil {
		return d, nil, err
	}
	d.Missing = len(before) == 0
	committed, err := parseAll(before)
	if err != nil {
		return d, nil, err
	}
	check := check{Catalogue: c, now: map[subject]*entry{}, had: map[subject]*entry{}, difference: &d}
	for _, e := range c.all() {
		check.now[e.subject()] = e
	}
	for _, e := range committed {
		check.had[e.subject()] = e
	}
	if now, err = c.Files(); err != nil {
		return d, nil, err
	}
	if err := check.keepStored(now, before); err != nil {
		return d, nil, err
	}
	for name, data := range now {
		if before[name] == nil {
			if _, err := os.Stat(filepath.Join(dir, filepath.FromSlash(name))); err == nil {
				return d, nil, &FileError{name, errors.New("it lacks the mark of this package: use a folder that has only the catalogue")}
			}
		}
		if string(before[name]) != string(data) {
			d.Stale = append(d.Stale, name)
		}
	}
	for name := range before {
		if _, ok := now[name]; !ok {
			d.Stale = append(d.Stale, name)
		}
	}
	slices.Sort(d.Stale)
	check.lost(before)
	for _, e := range committed {
		check.entry(e)
	}
	return d, now, nil
}

// parseAll reads the committed schemas, in the order of their files.
func parseAll(files map[string][]byte) (committed []*entry, err error) {
	for _, name := range sortedKeys(files) {
		if !strings.HasSuffix(name, ".json") || name == asyncAPIFile {
			continue
		}
		e, err := parse(name, files[name])
		if err != nil {
			return nil, err
		}
		committed = append(committed, e)
	}
	return committed, nil
}

func sortedKeys(m map[string][]byte) (keys []string) {
	for key := range m {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	return keys
}

// parse reads a committed schema.
func parse(name string, data []byte) (*entry, error) {
	s := &schema{}
	if err := json.Unmarshal(data, s); err != nil {
		return nil, &FileError{name, err}
	}
	if s.About == nil || !slices.Contains([]kind{event, state, upcaster, message}, s.About.Kind) {
		return nil, &FileError{name, errors.New("it lacks the keyword x-millrace with a known kind")}
	}
	if s.Stored != nil && s.Stored.About == nil {
		return nil, &FileError{name, errors.New("x-stored lacks the keyword x-millrace")}
	}
	return &entry{about: *s.About, schema: s, file: name}, nil
}
