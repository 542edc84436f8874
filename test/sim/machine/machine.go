// Package machine runs a Go program that was built for WebAssembly on a machine of which nothing is
// left to chance: its clock, its random numbers and its one processor are given. The same program
// with the same arguments and the same seed does the same to the last byte.
//
// The clock jumps: it goes on by how long the program means to wait when all of it waits, and by a
// little each time that it is read, so that a loop until a deadline ends.
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

// Machine runs a program, as often and as many times at once as is asked.
type Machine struct {
	runtime wazero.Runtime
	program wazero.CompiledModule
}

// ErrExit means that the program ended with another exit code than 0.
var ErrExit = errors.New("the program failed")

// New prepares a machine for a program, which takes seconds, or none if a directory is given where
// it has been done before. Close frees it.
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

// memoryPages bounds a program's memory: pages of 64 KiB, 1 GiB in all. What is not used takes
// none.
const memoryPages = 1 << 14

// Close frees the machine.
func (m *Machine) Close(ctx context.Context) error { return m.runtime.Close(ctx) }

// Run runs the program once, to its end. Errors: [ErrExit], and that of a program that goes wrong.
func (m *Machine) Run(ctx context.Context, seed [32]byte, args []string, stdout, stderr io.Writer) error {
	clock := &clock{now: epoch}
	config := wazero.NewModuleConfig().
		WithName(""). // or there could be only one at a time
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
