//go:build unix

package machine

import (
	"context"
	"syscall"

	"github.com/tetratelabs/wazero/experimental"
)

// withMemory makes each run use memory of its own from the system. The memory grows without being
// copied, and is freed with the run.
func withMemory(ctx context.Context) context.Context {
	return experimental.WithMemoryAllocator(ctx, experimental.MemoryAllocatorFunc(func(_, most uint64) experimental.LinearMemory {
		const private = syscall.MAP_PRIVATE | syscall.MAP_ANON
		all, err := syscall.Mmap(-1, 0, int(most), syscall.PROT_READ|syscall.PROT_WRITE, private)
		if err != nil {
			return &memory{} // no run can have memory
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
