//go:build unix

package main

import (
	"fmt"
	"os"
	"os/user"
	"strconv"
	"syscall"
)

// handOver returns a folder to who is to run PostgreSQL, which refuses to run as root: the user
// that Debian's package makes for it, or nobody. Others than root run it themselves.
func handOver(dir string) (*syscall.SysProcAttr, error) {
	if os.Geteuid() != 0 {
		return nil, nil
	}
	owner, err := user.Lookup("postgres")
	if err != nil {
		if owner, err = user.Lookup("nobody"); err != nil {
			return nil, fmt.Errorf("find who can run PostgreSQL in root's place: %w", err)
		}
	}
	uid, err := strconv.ParseUint(owner.Uid, 10, 32)
	if err != nil {
		return nil, err
	}
	gid, err := strconv.ParseUint(owner.Gid, 10, 32)
	if err != nil {
		return nil, err
	}
	return &syscall.SysProcAttr{
		Credential: &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)},
	}, os.Chown(dir, int(uid), int(gid))
}
