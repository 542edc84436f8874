package storage

import (
	"crypto/sha256"

	"github.com/google/uuid"
)

// Fingerprint is a digest of a command. The id of the command's commit contains it, so it is stored
// wherever the commit of the command is known, and takes no space of its own. The digest includes
// the command id, so that commits of equal commands have different ids.
type Fingerprint [6]byte

// FingerprintOf returns the fingerprint of a command with that id and content.
func FingerprintOf(commandID string, content []byte) (f Fingerprint) {
	digest := sha256.New()
	digest.Write([]byte(commandID))
	digest.Write([]byte{0})
	digest.Write(content)
	copy(f[:], digest.Sum(nil))
	return f
}

// marked is the version of the UUIDs whose last bytes are a fingerprint. RFC 9562 leaves it to
// applications.
const marked = 8

// Mark puts the fingerprint into the id of a commit. It returns false if the id is no UUID, or is
// one of that version.
func (f Fingerprint) Mark(commitID string) (string, bool) {
	id, ok := uuidOf(commitID)
	if !ok || id.Version() == marked {
		return "", false
	}
	id[6] = id[6]&0x0f | marked<<4
	copy(id[len(id)-len(f):], f[:])
	return id.String(), true
}

// Contradicts reports whether the commit is of a command with another fingerprint. A commit without
// one may be of any command.
func (f Fingerprint) Contradicts(commitID string) bool {
	id, ok := uuidOf(commitID)
	return ok && id.Version() == marked && Fingerprint(id[len(id)-len(f):]) != f
}

func uuidOf(text string) (id uuid.UUID, ok bool) {
	if len(text) != 36 {
		return id, false
	}
	id, err := uuid.Parse(text)
	return id, err == nil
}
