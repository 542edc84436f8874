package main

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const asProgram = "QUICKSTART_AS_PROGRAM"

func TestMain(m *testing.M) {
	if os.Getenv(asProgram) != "" {
		main()
		return
	}
	os.Exit(m.Run())
}

func TestTheProgramPrintsTheBalanceAndTheMail(t *testing.T) {
	t.Parallel()
	program := exec.CommandContext(t.Context(), os.Args[0])
	program.Env = append(os.Environ(), asProgram+"=1")
	var logged strings.Builder
	program.Stderr = &logged
	printed, err := program.Output()
	require.NoError(t, err, logged.String())
	assert.Equal(t, "balance: 70\nwithdraw 1000000: insufficient funds: the balance is 70\nmail: withdrawn 30\n", string(printed))
}
