package infra

import (
	"fmt"
	"io"
	"strings"
)

// Document holds the content of a document for Terraform or CloudFormation.
type Document struct {
	Tables []Table
	// Command creates the descriptor. It is a comment of the document, empty for none.
	Command            string
	PointInTime        bool
	DeletionProtection bool
	Access             Access

	lambda *Lambda // see SetLambda
	hints  filter
}

// comment writes the lines at the top of a document.
func (d Document) comment(w io.Writer) error {
	lines := []string{"Tables of Millrace, made by `millrace schema`."}
	if d.Command != "" {
		lines = append(lines, "",
			"A journal also needs a descriptor: an item that stores its shard count and its layout.",
			"This document cannot create it. Run this once, after the tables exist:", "",
			"  "+d.Command, "",
			"The shard count is an example: take one for each 250 events a second at the highest load.",
			"It never changes afterwards, nor does the layout.")
	}
	for _, line := range lines {
		if _, err := fmt.Fprintln(w, strings.TrimSpace("# "+line)); err != nil {
			return err
		}
	}
	_, err := fmt.Fprintln(w)
	return err
}
