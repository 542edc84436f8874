// Package postgres starts a PostgreSQL for tests and benchmarks.
package postgres

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	_ "github.com/lib/pq" // the driver
)

// ErrNone reports that no PostgreSQL is installed.
var ErrNone = errors.New("no PostgreSQL found (Debian: apt-get install postgresql)")

// postgresBin returns the folder of the newest PostgreSQL that Debian has installed, or of the one
// in the PATH.
func postgresBin() (string, error) {
	found, err := filepath.Glob("/usr/lib/postgresql/*/bin/initdb")
	if err != nil {
		return "", err
	}
	if path, err := exec.LookPath("initdb"); err == nil {
		found = append(found, path)
	}
	found = slices.DeleteFunc(found, func(path string) bool {
		_, err := os.Stat(filepath.Join(filepath.Dir(path), "postgres"))
		return err != nil
	})
	if len(found) == 0 {
		return "", ErrNone
	}
	newest := slices.MaxFunc(found, func(a, b string) int { return len(a) - len(b) + strings.Compare(a, b) })
	return filepath.Dir(newest), nil
}

// Server is a PostgreSQL with the default configuration, in its own folder, with a socket there.
type Server struct {
	DB *sql.DB
	// Name is the data source name of the database.
	Name string

	dir    string
	server *exec.Cmd
	log    *os.File
}

// Start starts a PostgreSQL. It returns [ErrNone] if none is installed. The caller stops it.
func Start(ctx context.Context) (*Server, error) {
	bin, err := postgresBin()
	if err != nil {
		return nil, err
	}
	p := &Server{}
	if err := p.start(ctx, bin); err != nil {
		return nil, errors.Join(err, p.Stop())
	}
	return p, nil
}

func (p *Server) start(ctx context.Context, bin string) (err error) {
	if p.dir, err = os.MkdirTemp("", "millrace-pg"); err != nil {
		return err
	}
	owner, err := handOver(p.dir)
	if err != nil {
		return err
	}
	data := filepath.Join(p.dir, "data")
	command := func(name string, args ...string) *exec.Cmd {
		cmd := exec.CommandContext(ctx, filepath.Join(bin, name), args...)
		cmd.Dir, cmd.SysProcAttr = p.dir, owner
		return cmd
	}
	out, err := command("initdb", "--pgdata", data, "--username", "postgres", "--auth", "trust", "--encoding", "UTF8").CombinedOutput()
	if err != nil {
		return fmt.Errorf("initdb: %w: %s", err, out)
	}
	if p.log, err = os.Create(filepath.Join(p.dir, "log")); err != nil {
		return err
	}
	server := command("postgres", "-D", data, "-c", "listen_addresses=", "-c", "unix_socket_directories="+p.dir)
	server.Stdout, server.Stderr = p.log, p.log
	server.Cancel, server.WaitDelay = func() error { return server.Process.Signal(os.Interrupt) }, 10*time.Second
	if err := server.Start(); err != nil {
		return err
	}
	p.server = server
	p.Name = "host=" + p.dir + " user=postgres dbname=postgres sslmode=disable"
	if p.DB, err = sql.Open("postgres", p.Name); err != nil {
		return err
	}
	return p.answers(ctx)
}

func (p *Server) answers(ctx context.Context) error {
	for deadline := time.Now().Add(30 * time.Second); ; time.Sleep(50 * time.Millisecond) {
		err := p.DB.PingContext(ctx)
		if err == nil {
			return nil
		}
		if ctx.Err() != nil || time.Now().After(deadline) {
			said, _ := os.ReadFile(p.log.Name())
			return fmt.Errorf("postgres does not answer: %w: %s", err, said)
		}
	}
}

// Stop stops the server and removes its folder.
func (p *Server) Stop() error {
	var errs []error
	if p.DB != nil {
		errs = append(errs, p.DB.Close())
	}
	if p.server != nil {
		// An interrupt ends its sessions and stops it. It may have received one from the terminal
		// already.
		if err := p.server.Process.Signal(os.Interrupt); err != nil && !errors.Is(err, os.ErrProcessDone) {
			errs = append(errs, err)
		}
		errs = append(errs, p.server.Wait())
	}
	if p.log != nil {
		errs = append(errs, p.log.Close())
	}
	if p.dir != "" {
		errs = append(errs, os.RemoveAll(p.dir))
	}
	return errors.Join(errs...)
}
