package encrypt

import (
	"bytes"
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"crypto/sha256"
	"fmt"
)

// KeyBytes is the length of a key in bytes, for AES-256.
const KeyBytes = 32

const (
	format        = 2 // the first byte of sealed data; format 1 had no key id
	keyIDBytes    = 8
	headerBytes   = 1 + keyIDBytes
	nonceBytes    = 12
	tagBytes      = 16
	overheadBytes = headerBytes + nonceBytes + tagBytes
)

// sealer encrypts and decrypts with one key.
type sealer struct {
	aead cipher.AEAD
	// header begins all data that the key encrypts: the format and the id of the key.
	header [headerBytes]byte
	// otherKey is the error for data that another key encrypted.
	otherKey error
}

func newSealer(key []byte, otherKey error) (*sealer, error) {
	if len(key) != KeyBytes {
		return nil, &ConfigError{Field: "key", Reason: fmt.Sprintf("has %d bytes: AES-256 needs %d random bytes", len(key), KeyBytes)}
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, err
	}
	aead, err := cipher.NewGCM(block)
	if err != nil {
		return nil, err
	}
	s := &sealer{aead: aead, header: [headerBytes]byte{format}, otherKey: otherKey}
	// The id is public. It reveals nothing about a key of 32 random bytes.
	sum := sha256.Sum256(append([]byte("millrace key id"), key...))
	copy(s.header[1:], sum[:keyIDBytes])
	return s, nil
}

// seal returns header, nonce, ciphertext and tag. It authenticates the header too. A random nonce
// is safe for 2^32 payloads of one key, which is far more than an aggregate has.
func (s *sealer) seal(plain, about []byte) []byte {
	out := make([]byte, headerBytes+nonceBytes, overheadBytes+len(plain))
	copy(out, s.header[:])
	_, _ = rand.Read(out[headerBytes:]) // never fails, by its documentation
	return s.aead.Seal(out, out[headerBytes:], plain, append(about, s.header[:]...))
}

// unseal reverses seal. Errors: otherKey, [ErrForged].
func (s *sealer) unseal(sealed, about []byte) ([]byte, error) {
	if len(sealed) < overheadBytes {
		return nil, fmt.Errorf("%w: it has %d bytes, which is too short", ErrForged, len(sealed))
	}
	if sealed[0] != format {
		return nil, fmt.Errorf("%w: it has the format %d, but this version reads %d", ErrForged, sealed[0], format)
	}
	header, nonce, body := sealed[:headerBytes], sealed[headerBytes:headerBytes+nonceBytes], sealed[headerBytes+nonceBytes:]
	if !bytes.Equal(header, s.header[:]) {
		return nil, fmt.Errorf("%w: encrypted with key id %x, but the stored key has id %x: restore the former key",
			s.otherKey, header[1:], s.header[1:])
	}
	plain, err := s.aead.Open(make([]byte, 0, len(body)-tagBytes), nonce, body, append(about, header...))
	if err != nil {
		return nil, fmt.Errorf("%w: it was changed, or moved from another place", ErrForged)
	}
	return plain, nil
}
