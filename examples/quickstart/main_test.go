package main

import (
	"io"
	"os"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// It takes the place of the process's standard output, so it cannot run in parallel.
func TestTheProgramPrintsWhatHappened(t *testing.T) {
	stdout := os.Stdout
	defer func() { os.Stdout = stdout }()
	read, write, err := os.Pipe()
	require.NoError(t, err)
	os.Stdout = write

	main() // prints less than a pipe holds

	require.NoError(t, write.Close())
	printed, err := io.ReadAll(read)
	require.NoError(t, err)
	assert.Contains(t, string(printed), "withdraw 71: insufficient funds\naccount: balance 70 after 2 events\n")
	assert.Contains(t, string(printed), "event: account.deposited.v1 {\"Amount\":100}\nevent: account.withdrawn.v1 {\"Amount\":30}\n")
}
