//go:build unix

package machine

import (
	"context"
	"syscall"

	"github.com/tetratelabs/wazero/experimental"
)

// withMemory gives each run memory of the system's own: it grows without being copied, and is gone
// when the run is.
func withMemory(ctx context.Context) context.Context {
	return experimental.WithMemoryAllocator(ctx, experimental.MemoryAllocatorFunc(func(_, most uint64) experimental.LinearMemory {
		const private = syscall.MAP_PRIVATE | syscall.MAP_ANON
		all, err := syscall.Mmap(-1, 0, int(most), syscall.PROT_READ|syscall.PROT_WRITE, private)
		if err != nil {
			return &memory{} // of which no run can have any
		}
		return &memory{all: all}
	}))
}

type memory struct{ all []byte }

func (m *memory) Reallocate(size uint64) []byte {
	if size > uint64(len(m.all)) {
		return nil
	}
	return m.all[:size:size]
}

func (m *memory) Free() {
	if m.all != nil {
		_ = syscall.Munmap(m.all)
		m.all = nil
	}
}
