package main

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const asProgram = "ACCOUNTS_AS_PROGRAM"

func TestMain(m *testing.M) {
	if os.Getenv(asProgram) != "" {
		main()
		return
	}
	os.Exit(m.Run())
}

func TestTheProgramPrintsWhatTheReadModelHolds(t *testing.T) {
	t.Parallel()
	program := exec.CommandContext(t.Context(), os.Args[0])
	program.Env = append(os.Environ(), asProgram+"=1")
	var logged strings.Builder
	program.Stderr = &logged
	printed, err := program.Output()
	require.NoError(t, err, logged.String())
	assert.Equal(t, "withdraw 1000000: insufficient funds: the balance is 70\nbalance: 70\n", string(printed))
}
