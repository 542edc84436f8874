//go:build unix

package postgres

import (
	"fmt"
	"os"
	"os/user"
	"strconv"
	"syscall"
)

// handOver changes the owner of a folder to the user who will run PostgreSQL, since it refuses to
// run as root: the user of Debian's package, or nobody. If this process does not run as root, it
// changes nothing.
func handOver(dir string) (*syscall.SysProcAttr, error) {
	if os.Geteuid() != 0 {
		return nil, nil
	}
	owner, err := user.Lookup("postgres")
	if err != nil {
		if owner, err = user.Lookup("nobody"); err != nil {
			return nil, fmt.Errorf("find a user other than root for PostgreSQL: %w", err)
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
