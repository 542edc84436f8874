package encrypt

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"fmt"
)

// KeyBytes is the length of a key, for AES-256.
const KeyBytes = 32

const (
	format        = 1 // the first byte of what is sealed
	nonceBytes    = 12
	tagBytes      = 16
	overheadBytes = 1 + nonceBytes + tagBytes
)

func newAEAD(key []byte) (cipher.AEAD, error) {
	if len(key) != KeyBytes {
		return nil, &ConfigError{Field: "key", Reason: fmt.Sprintf("has %d bytes: AES-256 takes %d random ones", len(key), KeyBytes)}
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, err
	}
	return cipher.NewGCM(block)
}

// seal returns format, nonce, ciphertext and tag. The format is authenticated too. A random nonce
// is safe for 2^32 payloads of one key, far more than an aggregate has.
func seal(aead cipher.AEAD, plain, about []byte) []byte {
	out := make([]byte, 1+nonceBytes, overheadBytes+len(plain))
	out[0] = format
	_, _ = rand.Read(out[1:]) // never fails, by its documentation
	return aead.Seal(out, out[1:], plain, append(about, format))
}

func unseal(aead cipher.AEAD, sealed, about []byte) ([]byte, error) {
	if len(sealed) < overheadBytes {
		return nil, fmt.Errorf("%w: it has %d bytes, which is too short", ErrForged, len(sealed))
	}
	if sealed[0] != format {
		return nil, fmt.Errorf("%w: it has the format %d, this version reads %d", ErrForged, sealed[0], format)
	}
	body := sealed[1+nonceBytes:]
	plain, err := aead.Open(make([]byte, 0, len(body)-tagBytes), sealed[1:1+nonceBytes], body, append(about, format))
	if err != nil {
		return nil, fmt.Errorf("%w: it was changed, moved from another place, or encrypted with another key", ErrForged)
	}
	return plain, nil
}
