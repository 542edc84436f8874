package main

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const asProgram = "MAILS_AS_PROGRAM"

func TestMain(m *testing.M) {
	if os.Getenv(asProgram) != "" {
		main()
		return
	}
	os.Exit(m.Run())
}

func TestEachMailIsSentOnce(t *testing.T) {
	t.Parallel()
	program := exec.CommandContext(t.Context(), os.Args[0])
	program.Env = append(os.Environ(), asProgram+"=1")
	var logged strings.Builder
	program.Stderr = &logged
	printed, err := program.Output()
	require.NoError(t, err, logged.String())
	assert.Equal(t, "to ada: we have your order\nto ada: your order is on its way\n3 requests, 2 mails\n", string(printed))
}
