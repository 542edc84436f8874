package dynamolocal

import (
	"context"
	"crypto/sha512"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
)

// release is an npm package with the emulator, and the expected digests.
type release struct {
	pkg       string // name and version
	integrity string // of the archive in npm's form: base64 of the SHA-512
	tree      string // treeDigest of the unpacked folder
	folder    string // the folder with the emulator in the archive
}

// emulator is DynamoDB Local 1.25.1.
var emulator = release{
	pkg:       "amplify-dynamodb-simulator@2.9.30",
	integrity: "sha512-xTeeRLvzEfqyd5lh3bH4c0kHvSHHmmhD5ZDsHFKAQ5g2Zl6JqlFdutaQhCLHzxEp6Ry1o7TB6niIoXuQAnSewQ==",
	tree:      "sha256-0d532737d6f490bd20bc410520d9e35c12da296ec25f93fa6af1d6750f73b128",
	folder:    "package/emulator/",
}

// cacheDir returns the folder for emulators, which is outside of any repository.
func cacheDir() (string, error) {
	dir, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("find the cache folder for DynamoDB Local: %w", err)
	}
	return filepath.Join(dir, "millrace", "dynamodb-local"), nil
}

// ensure returns a folder in cache that contains the intact emulator. It fetches the release if
// there is no complete copy: a cache cleaner may have removed files, or a full disk may have
// truncated them.
//
// Several processes may do this at the same time. Each unpacks into its own folder and renames it,
// complete and verified, to a free place. A process that comes second finds the place taken by the
// same files and uses these. A damaged folder stays, and the next place is used. If two processes
// replaced it, one would move away what the other has just started to run.
func (r release) ensure(ctx context.Context, cache string, o Options) (dir string, err error) {
	n := 1
	for ; exists(r.place(cache, n)); n++ {
		damage := r.verify(r.place(cache, n))
		if damage == nil {
			return r.place(cache, n), nil
		}
		o.notef("skipping a damaged copy, which can be removed: %v", damage)
	}

	if err := os.MkdirAll(cache, 0o755); err != nil {
		return "", fmt.Errorf("make the cache folder for DynamoDB Local: %w", err)
	}
	work, err := os.MkdirTemp(cache, "fetch-")
	if err != nil {
		return "", fmt.Errorf("make the cache folder for DynamoDB Local: %w", err)
	}
	defer func() { _ = os.RemoveAll(work) }()
	archive, err := r.fetch(ctx, work, o)
	if err != nil {
		return "", err
	}
	unpacked := filepath.Join(work, "unpacked")
	if err := r.unpack(archive, unpacked); err != nil {
		return "", err
	}

	for ; ; n++ {
		dir := r.place(cache, n)
		err := os.Rename(unpacked, dir) // it fails if dir exists and has files
		if err == nil || r.verify(dir) == nil {
			return dir, nil
		}
		if !exists(dir) {
			return "", fmt.Errorf("put the emulator into the cache: %w", err)
		}
	}
}

// place returns the nth folder in cache for the release.
func (r release) place(cache string, n int) string {
	name := r.pkg
	if n > 1 {
		name += "." + strconv.Itoa(n)
	}
	return filepath.Join(cache, name)
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return !errors.Is(err, os.ErrNotExist)
}

// verify returns an error unless dir contains the files of the release and no others.
func (r release) verify(dir string) error {
	digest, err := treeDigest(dir)
	if err != nil {
		return fmt.Errorf("read the emulator in the cache: %w", err)
	}
	if digest != r.tree {
		return fmt.Errorf("%s: the files have the digest %s instead of %s", dir, digest, r.tree)
	}
	return nil
}

// fetch downloads the archive into work with npm, which has the registry, the proxy and the
// credentials of this machine.
func (r release) fetch(ctx context.Context, work string, o Options) (archive string, err error) {
	npm, err := exec.LookPath("npm")
	if err != nil {
		return "", missingError("there is no npm command, which fetches the emulator")
	}
	o.notef("fetching DynamoDB Local with npm (once): %s", r.pkg)
	cmd := exec.CommandContext(ctx, npm, "pack", r.pkg, "--ignore-scripts")
	cmd.Dir = work // npm puts the archive here and chooses its name
	out, err := cmd.CombinedOutput()
	if ctx.Err() != nil {
		return "", ctx.Err()
	}
	if err != nil {
		return "", fmt.Errorf("fetch %s with npm: %w; it printed:\n%s", r.pkg, err, out)
	}
	found, err := filepath.Glob(filepath.Join(work, "*.tgz"))
	if err != nil || len(found) != 1 {
		return "", fmt.Errorf("fetch %s with npm: it left %d archives instead of one; it printed:\n%s", r.pkg, len(found), out)
	}
	return found[0], nil
}

// unpack extracts the emulator into dir, which must not exist, after comparing the archive with the
// pinned digest.
func (r release) unpack(archive, dir string) error {
	f, err := os.Open(archive)
	if err != nil {
		return fmt.Errorf("unpack %s: %w", r.pkg, err)
	}
	defer func() { _ = f.Close() }()

	hash := sha512.New()
	if _, err := io.Copy(hash, f); err != nil {
		return fmt.Errorf("unpack %s: %w", r.pkg, err)
	}
	if got := "sha512-" + base64.StdEncoding.EncodeToString(hash.Sum(nil)); got != r.integrity {
		return fmt.Errorf("%s is refused: its archive has the checksum %s instead of %s", r.pkg, got, r.integrity)
	}
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return fmt.Errorf("unpack %s: %w", r.pkg, err)
	}
	if err := extract(f, r.folder, dir); err != nil {
		return fmt.Errorf("unpack %s: %w", r.pkg, err)
	}
	return r.verify(dir)
}
