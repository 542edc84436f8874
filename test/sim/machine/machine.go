// Package machine runs a Go program that was built for WebAssembly on a deterministic machine with
// a given clock, given random numbers and one processor. The same program with the same arguments
// and the same seed has the same output, byte for byte.
//
// The clock jumps: when the whole program waits, it moves on to the end of the wait. It also moves
// on a little each time that it is read, so that a loop until a deadline ends.
package machine

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"runtime"
	"time"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/experimental"
	"github.com/tetratelabs/wazero/imports/wasi_snapshot_preview1"
	"github.com/tetratelabs/wazero/sys"
)

// Machine runs a program any number of times, also concurrently.
type Machine struct {
	runtime wazero.Runtime
	program wazero.CompiledModule
}

// ErrExit reports that the program ended with another exit code than 0.
var ErrExit = errors.New("the program failed")

// New prepares a machine for a program. That takes seconds, unless the cache directory has the
// result of an earlier preparation. Close frees the machine.
func New(ctx context.Context, program []byte, cache string) (*Machine, error) {
	config := wazero.NewRuntimeConfigCompiler().
		WithMemoryLimitPages(memoryPages)
	if cache != "" {
		kept, err := wazero.NewCompilationCacheWithDir(cache)
		if err != nil {
			return nil, fmt.Errorf("prepare in %s: %w", cache, err)
		}
		config = config.WithCompilationCache(kept)
	}
	m := &Machine{runtime: wazero.NewRuntimeWithConfig(ctx, config)}
	_, err := wasi_snapshot_preview1.Instantiate(ctx, m.runtime)
	if err == nil {
		m.program, err = m.runtime.CompileModule(experimental.WithCompilationWorkers(ctx, runtime.GOMAXPROCS(0)), program)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("prepare the program: %w", err), m.Close(ctx))
	}
	return m, nil
}

// memoryPages limits the memory of a program: pages of 64 KiB, 1 GiB in all. Unused pages take no
// memory.
const memoryPages = 1 << 14

// Close frees the machine.
func (m *Machine) Close(ctx context.Context) error { return m.runtime.Close(ctx) }

// Run runs the program once, to its end. Errors: [ErrExit], and an error for a program that fails
// otherwise.
func (m *Machine) Run(ctx context.Context, seed [32]byte, args []string, stdout, stderr io.Writer) error {
	clock := &clock{now: epoch}
	config := wazero.NewModuleConfig().
		// With a name there could be only one at a time.
		WithName("").
		WithArgs(append([]string{"guest"}, args...)...).
		WithStdout(stdout).WithStderr(stderr).
		WithRandSource(rand.NewChaCha8(seed)).
		WithNanotime(clock.read, 1).
		WithWalltime(clock.wall, 1).
		WithNanosleep(clock.pass).
		WithOsyield(func() { clock.pass(int64(time.Microsecond)) })
	module, err := m.runtime.InstantiateModule(withMemory(ctx), m.program, config)
	if module != nil {
		err = errors.Join(err, module.Close(ctx))
	}
	var exit *sys.ExitError
	switch {
	case !errors.As(err, &exit):
		return err
	case exit.ExitCode() != 0:
		return fmt.Errorf("%w: exit code %d", ErrExit, exit.ExitCode())
	default:
		return nil
	}
}
