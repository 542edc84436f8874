package dynamolocal

import (
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
)

// Environ returns env with the variables that direct a program to this server. If the emulator was
// started here, it also adds a region and dummy credentials that env lacks. The user of an existing
// endpoint has to set these.
func (s *Server) Environ(env []string) []string {
	env = append(slices.Clone(env), EndpointEnv+"="+s.Endpoint)
	if !s.Owned() {
		return env
	}
	for _, v := range []struct{ name, value string }{
		{"AWS_REGION", Region},
		{"AWS_ACCESS_KEY_ID", "millrace"},
		{"AWS_SECRET_ACCESS_KEY", "secret"},
	} {
		set := func(entry string) bool { return strings.HasPrefix(entry, v.name+"=") && entry != v.name+"=" }
		if !slices.ContainsFunc(env, set) {
			env = append(env, v.name+"="+v.value)
		}
	}
	return env
}

// Run runs cmd with the environment of Environ until it ends, passes signals on to it, and returns
// its exit code: 128 plus the signal's number if a signal ended it. An error means that cmd could
// not be started.
//
// The command has its own process group. So an interrupt at the terminal reaches it once, through
// signals, and not twice. It also reaches the processes that the command has started.
func (s *Server) Run(cmd *exec.Cmd, signals <-chan os.Signal) (code int, err error) {
	if cmd.Env == nil {
		cmd.Env = os.Environ()
	}
	cmd.Env = s.Environ(cmd.Env)
	p, err := startProcess(cmd)
	if err != nil {
		return 0, fmt.Errorf("run the command: %w", err)
	}
	for {
		select {
		case <-p.done:
			return p.exitCode(), nil
		case sig := <-signals:
			if sig, ok := sig.(syscall.Signal); ok {
				p.signal(sig)
			}
		}
	}
}
