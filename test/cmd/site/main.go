// Command site builds the static site of the documentation: docs, README.md and the other pages of
// the root folder, with navigation and a search. `make site` runs it.
//
//	go run ./test/cmd/site [-out bin/site]
//
// It runs in the root folder of the repository. The pages stay as GitHub shows them: a page needs
// no front matter, links are relative to its file, and anchors are those of GitHub. The navigation
// is that of docs/README.md, its headings and the links in its tables. Links to other files of the
// repository go to GitHub. A link to a missing file or heading is an error.
//
// The site needs no server: a browser can open bin/site/index.html, and the search works there too.
// It needs no other host, except for the badges of the README.
package main

import (
	"flag"
	"fmt"
	"os"
)

const repository = "https://github.com/millrace-dev/millrace"

func main() {
	out := flag.String("out", "bin/site", "the folder to write; a former site in it is removed")
	flag.Parse()
	pages, err := build(".", *out)
	if err != nil {
		fmt.Fprintln(os.Stderr, "site:", err)
		os.Exit(1)
	}
	fmt.Printf("%d pages: open %s/index.html\n", pages, *out)
}
