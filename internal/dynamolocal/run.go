package dynamolocal

import (
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
)

// Environ returns env with the variables added that lead a program to this server. Region and dummy
// credentials are added where env has none, but only for a started emulator: whoever names an
// endpoint also says how to sign for it.
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

// Run runs cmd in the environment of Environ until it ends, passes on to it the signals that come,
// and returns its exit code: 128 and the signal's number if a signal ended it. The error says that
// it could not be started.
//
// The command gets a process group of its own. An interrupt typed at the terminal thus reaches it
// once, through signals, instead of twice, and together with the processes that it has started.
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
