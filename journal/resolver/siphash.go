package resolver

import (
	"encoding/binary"
	"math/bits"
)

// sipHash13 is SipHash with one round for each 8 bytes, three final rounds, and the key 0.
// (Aumasson and Bernstein: SipHash, a fast short-input PRF, 2012.)
func sipHash13(data []byte) uint64 {
	s := sipState{0x736f6d6570736575, 0x646f72616e646f6d, 0x6c7967656e657261, 0x7465646279746573}
	length := uint64(len(data))
	for ; len(data) >= 8; data = data[8:] {
		s.absorb(binary.LittleEndian.Uint64(data))
	}
	var rest [8]byte
	copy(rest[:], data)
	s.absorb(binary.LittleEndian.Uint64(rest[:]) | length<<56)
	s[2] ^= 0xff
	for range 3 {
		s.round()
	}
	return s[0] ^ s[1] ^ s[2] ^ s[3]
}

type sipState [4]uint64

func (s *sipState) absorb(word uint64) {
	s[3] ^= word
	s.round()
	s[0] ^= word
}

func (s *sipState) round() {
	s[0] += s[1]
	s[2] += s[3]
	s[1] = bits.RotateLeft64(s[1], 13) ^ s[0]
	s[3] = bits.RotateLeft64(s[3], 16) ^ s[2]
	s[0] = bits.RotateLeft64(s[0], 32) + s[3]
	s[2] += s[1]
	s[3] = bits.RotateLeft64(s[3], 21) ^ s[0]
	s[1] = bits.RotateLeft64(s[1], 17) ^ s[2]
	s[2] = bits.RotateLeft64(s[2], 32)
}
