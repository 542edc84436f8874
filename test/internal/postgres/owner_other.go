//go:build !unix

package postgres

import "syscall"

func handOver(string) (*syscall.SysProcAttr, error) { return nil, nil }
