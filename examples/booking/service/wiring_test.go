package service

import (
	"bytes"
	"os"
	"testing"
)

func TestTheWiringHasAtMost150Lines(t *testing.T) {
	t.Parallel()
	source, err := os.ReadFile("service.go")
	if err != nil {
		t.Fatal(err)
	}
	if lines := bytes.Count(source, []byte("\n")); lines > 150 {
		t.Errorf("service.go has %d lines", lines)
	}
}
