// Command releasecheck rehearses a release: it publishes the root module and cmd/millrace, as they
// are in the working tree, in a file-system module proxy, and uses them as a user does, in an empty
// folder outside the repository.
//
//	go run ./test/cmd/releasecheck
//	go run ./test/cmd/releasecheck -tidy
//
// With -tidy it tidies go.mod and go.sum of cmd/millrace instead. It runs in the root folder of the
// repository. It needs Go and git, and a module proxy only for other modules that are not in the
// module cache. docs/releasing.md says what it checks.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"
)

func main() {
	tidyOnly := flag.Bool("tidy", false, "tidy go.mod and go.sum of cmd/millrace instead")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	var err error
	if *tidyOnly {
		err = tidy(ctx, ".")
	} else {
		err = rehearse(ctx, ".", os.Stdout)
	}
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "releasecheck:", err)
		os.Exit(1)
	}
}
