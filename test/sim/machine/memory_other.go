//go:build !unix

package machine

import "context"

func withMemory(ctx context.Context) context.Context { return ctx }
