package storage_test

import (
	"strconv"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/internal/storage"
)

func command(version int) storage.DatedCommand {
	return storage.DatedCommand{Command: storage.Command{ID: "command " + strconv.Itoa(version), Version: uint64(version)}}
}

func executed(versions int) *storage.Commands {
	c := &storage.Commands{}
	for version := range versions {
		c = c.With(uint64(version), command(version))
	}
	return c
}

func TestALongerListOfCommandsSharesTheShorterOne(t *testing.T) {
	t.Parallel()
	const commits = 10_000
	c, copies := executed(1), 0
	for version := 1; version < commits; version++ {
		longer := c.With(uint64(version), command(version))
		if &longer.Dated()[0] != &c.Dated()[0] {
			copies++
		}
		c = longer
	}
	assert.Len(t, c.Dated(), commits)
	assert.Less(t, copies, 50, "only a list without room is copied")
}

func TestCommandsOfALongerListAreUnknownToTheShorterOne(t *testing.T) {
	t.Parallel()
	short := executed(3)
	long := short.With(3, command(3), command(1))
	other := short.With(3, command(30))

	assert.Len(t, short.Dated(), 3)
	assert.Equal(t, []storage.DatedCommand{command(0), command(1), command(2), command(3)}, long.Dated())
	assert.Equal(t, []storage.DatedCommand{command(0), command(1), command(2), command(30)}, other.Dated())
	for _, unknown := range []struct {
		in *storage.Commands
		id int
	}{{short, 3}, {short, 30}, {long, 30}, {other, 3}, {&storage.Commands{}, 0}} {
		_, known := unknown.in.Find(command(unknown.id).ID)
		assert.False(t, known, "%d", unknown.id)
	}
	found, known := other.Find(command(30).ID)
	require.True(t, known)
	assert.Equal(t, command(30).Command, found)
}

func TestSharedCommandsGrowInSeveralGoroutines(t *testing.T) {
	t.Parallel()
	base := executed(10)
	var all sync.WaitGroup
	for i := range 8 {
		all.Add(1)
		go func() {
			defer all.Done()
			c := base
			for version := 10; version < 100; version++ {
				c = c.With(uint64(version), command(1000*i+version))
			}
			assert.Len(t, c.Dated(), 100)
			_, known := c.Find(command(1000*i + 99).ID)
			assert.True(t, known)
		}()
	}
	all.Wait()
	assert.Len(t, base.Dated(), 10)
}
