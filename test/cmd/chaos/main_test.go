//go:build unix

package main

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/millrace-dev/millrace/internal/dynamolocal"
)

func TestAWrongFlagIsRefused(t *testing.T) {
	t.Parallel()
	var out, notes bytes.Buffer
	assert.Equal(t, 2, run(t.Context(), []string{"-minuts", "3"}, &out, &notes))
	assert.Empty(t, out.String())
}

func TestWithoutAnEmulatorItSaysHowToGetOne(t *testing.T) {
	t.Setenv(dynamolocal.EndpointEnv, "")
	var out, notes bytes.Buffer
	assert.Equal(t, 1, run(t.Context(), nil, &out, &notes))
	assert.Empty(t, out.String())
	assert.Contains(t, notes.String(), "make chaos")
}
