package main

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

	_ "github.com/lib/pq"
)

var errNoPostgres = errors.New("no PostgreSQL found (Debian: apt-get install postgresql)")

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
		return "", errNoPostgres
	}
	newest := slices.MaxFunc(found, func(a, b string) int { return len(a) - len(b) + strings.Compare(a, b) })
	return filepath.Dir(newest), nil
}

// postgres is a PostgreSQL with the default configuration, in its own folder, with a socket there.
type postgres struct {
	db     *sql.DB
	dir    string
	server *exec.Cmd
	log    *os.File
}

// startPostgres starts a PostgreSQL. It returns errNoPostgres if none is installed. The caller
// stops it.
func startPostgres(ctx context.Context) (*postgres, error) {
	bin, err := postgresBin()
	if err != nil {
		return nil, err
	}
	p := &postgres{}
	if err := p.start(ctx, bin); err != nil {
		return nil, errors.Join(err, p.stop())
	}
	return p, nil
}

func (p *postgres) start(ctx context.Context, bin string) (err error) {
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
	if p.db, err = sql.Open("postgres", "host="+p.dir+" user=postgres dbname=postgres sslmode=disable"); err != nil {
		return err
	}
	return p.answers(ctx)
}

func (p *postgres) answers(ctx context.Context) error {
	for deadline := time.Now().Add(30 * time.Second); ; time.Sleep(restPause) {
		err := p.db.PingContext(ctx)
		if err == nil {
			return nil
		}
		if ctx.Err() != nil || time.Now().After(deadline) {
			said, _ := os.ReadFile(p.log.Name())
			return fmt.Errorf("postgres does not answer: %w: %s", err, said)
		}
	}
}

// stop stops the server and removes its folder.
func (p *postgres) stop() error {
	var errs []error
	if p.db != nil {
		errs = append(errs, p.db.Close())
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
