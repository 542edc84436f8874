// Command prose checks the text of the repository: comments, strings and names of Go files, and
// Markdown pages. It reports lines that are too long and words that have a plainer equivalent.
//
//	go run ./test/cmd/prose [-long] [path ...]
//
// Without a path it checks the whole repository. The list of words is in words.txt.
//
// A file that needs a refused word says why. The exception covers the whole file. In a Go file:
//
//	//prose:allow crew: the people on the ship of the example
//
// In a Markdown page:
//
//	<!-- prose:allow crew: the people on the ship of the example -->
//
// The exit code is 1 if there are findings.
package main

//prose:allow crew: the documentation above shows an exception

import (
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

func main() {
	long := flag.Bool("long", false, "also list sentences of more than 30 words, which is no failure")
	flag.Parse()
	paths := flag.Args()
	if len(paths) == 0 {
		paths = []string{"."}
	}
	failed := false
	for _, path := range paths {
		err := walk(path, func(name string, source []byte) {
			for _, f := range check(name, source) {
				failed = true
				fmt.Println(f)
			}
			if *long {
				for _, f := range longSentences(name, source) {
					fmt.Println(f)
				}
			}
		})
		if err != nil {
			fmt.Fprintln(os.Stderr, "prose:", err)
			os.Exit(2)
		}
	}
	if failed {
		os.Exit(1)
	}
}

// walk calls f for each Go file and each Markdown page at or below a path.
func walk(path string, f func(name string, source []byte)) error {
	return filepath.WalkDir(path, func(name string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir():
			if base := entry.Name(); name != path && (strings.HasPrefix(base, ".") || base == "node_modules" || base == "testdata") {
				return filepath.SkipDir
			}
			return nil
		case strings.HasSuffix(name, ".go"), strings.HasSuffix(name, ".md"):
			source, err := os.ReadFile(name)
			if err == nil {
				f(name, source)
			}
			return err
		default:
			return nil
		}
	})
}
