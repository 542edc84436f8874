package dynamolocal

import (
	"archive/tar"
	"compress/gzip"
	"crypto/sha256"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// extract writes the regular files below folder (with a slash at its end) of the gzipped tar to
// dir, which must not exist. It refuses a name that leads out of dir. It also refuses anything that
// is neither a file nor a folder, because a link could redirect a later file to another place.
func extract(archive io.Reader, folder, dir string) error {
	if err := os.Mkdir(dir, 0o755); err != nil {
		return err
	}
	unzipped, err := gzip.NewReader(archive)
	if err != nil {
		return err
	}
	entries := tar.NewReader(unzipped)
	for {
		h, err := entries.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		name, ok := strings.CutPrefix(h.Name, folder)
		if !ok || name == "" || h.Typeflag == tar.TypeDir {
			continue
		}
		if h.Typeflag != tar.TypeReg || !filepath.IsLocal(name) {
			return fmt.Errorf("refuse %q: it is not a file inside the folder", h.Name)
		}
		if err := writeFile(filepath.Join(dir, filepath.FromSlash(name)), entries); err != nil {
			return err
		}
	}
}

func writeFile(path string, content io.Reader) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return err
	}
	_, err = io.Copy(f, content)
	return errors.Join(err, f.Close())
}

// treeDigest returns a digest of the names and contents of all files below dir. It ignores modes
// and times, because they differ by system and user.
func treeDigest(dir string) (string, error) {
	sum := sha256.New()
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		name, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		return addFile(sum, filepath.ToSlash(name), path)
	})
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("sha256-%x", sum.Sum(nil)), nil
}

func addFile(sum hash.Hash, name, path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	content := sha256.New()
	if _, err := io.Copy(content, f); err != nil {
		return err
	}
	_, err = fmt.Fprintf(sum, "%x  %s\n", content.Sum(nil), name)
	return err
}
