package main

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestTheLastLineHasTheCountsAndTheSeed(t *testing.T) {
	t.Parallel()
	var out, notes bytes.Buffer
	assert.Zero(t, run(t.Context(), []string{"-commits", "100", "-parallel", "1", "-seed", "3"}, &out, &notes), notes.String())
	assert.Regexp(t, `^soak commits=\d{3,} lost=0 gaps=0 wrong=0 stuck=0 seed=3\n$`, out.String())
}

func TestAWrongFlagIsRefused(t *testing.T) {
	t.Parallel()
	var out, notes bytes.Buffer
	assert.Equal(t, 2, run(t.Context(), []string{"-comits", "100"}, &out, &notes))
	assert.Empty(t, out.String())
}
