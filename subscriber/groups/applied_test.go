package groups_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/dynamotest"
	"github.com/millrace-dev/millrace/internal/checkpoint"
	"github.com/millrace-dev/millrace/internal/testdb"
	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/subscriber"
	"github.com/millrace-dev/millrace/subscriber/groups"
)

func TestAReaderWaitsUntilAnEventIsApplied(t *testing.T) {
	t.Parallel()
	client := create(t, 2)
	s := open(t, client, journal.Config{})
	s.write(t, "a", 0, 2)
	_, messages := subscribe(t, s.alone())
	receive(t, messages).Ack()
	require.NoError(t, s.WaitApplied(t.Context(), group, account("a"), 1))
	number, err := s.Position(t.Context(), group, account("a"))
	require.NoError(t, err)
	assert.EqualValues(t, 1, number)

	second := receive(t, messages)
	impatient, cancel := context.WithCancel(t.Context())
	defer cancel()
	looking := dynamotest.NewProxy(t, client)
	looking.Observe(func(c dynamotest.Call) {
		if c.Operation == "BatchGetItem" {
			cancel() // there is time for one read only
		}
	})
	err = open(t, looking.Client(), journal.Config{}).WaitApplied(impatient, group, account("a"), 2)
	require.ErrorIs(t, err, groups.ErrNotApplied)
	require.ErrorIs(t, err, context.Canceled)
	require.ErrorContains(t, err, `event 2 of account-a by group "group", which is at 1`)

	waited := make(chan error, 1)
	go func() { waited <- s.WaitApplied(t.Context(), group, account("a"), 2) }()
	second.Ack()
	require.NoError(t, <-waited)
}

func TestAReaderWaitsForAllThatATokenNames(t *testing.T) {
	t.Parallel()
	s := setup(t, 2)
	s.write(t, "a", 0, 1)
	s.write(t, "b", 0, 1)
	_, messages := subscribe(t, s.alone())
	first, second := receive(t, messages), receive(t, messages)
	token, err := aggregate.ParseToken(aggregate.Token{{ID: account("a"), Version: 1}, {ID: account("b"), Version: 1}}.String())
	require.NoError(t, err)

	first.Ack()
	impatient, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	require.ErrorIs(t, s.WaitToken(impatient, group, token), groups.ErrNotApplied)
	second.Ack()
	require.NoError(t, s.WaitToken(t.Context(), group, token))
	require.NoError(t, s.WaitToken(t.Context(), group, nil), "there is nothing to wait for")

	wider := token.And(aggregate.Token{{ID: aggregate.ID{Type: "other", Value: "1"}, Version: 1}})
	require.NoError(t, s.WaitToken(t.Context(), group, wider.Of(topic)))
	require.NoError(t, s.WaitToken(t.Context(), group, wider), "the group does not have the topic")
}

func TestATokenOfAnotherTopicWaitsForTheGroup(t *testing.T) {
	t.Parallel()
	testdb.WithFakeTime(t, func(t *testing.T) {
		s := setup(t, 1)
		other := aggregate.Token{{ID: aggregate.ID{Type: "other", Value: "1"}, Version: 1}}
		impatient, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		err := s.WaitToken(impatient, group, other)
		require.ErrorIs(t, err, groups.ErrNoGroup, "no topic has the group, so its name may be wrong")
		require.ErrorIs(t, err, groups.ErrNotApplied)

		waited := make(chan error, 1)
		go func() { waited <- s.WaitToken(t.Context(), group, other) }()
		subscribe(t, s.quick())
		require.NoError(t, <-waited)
	})
}

func TestWhatWasBeforeAGroupBeganCountsAsApplied(t *testing.T) {
	t.Parallel()
	s := setup(t, 2)
	s.write(t, "a", 0, 3)
	config := s.alone()
	config.Start = subscriber.At(time.Now().Add(time.Hour))
	subscribe(t, config)
	require.Eventually(t, func() bool { _, err := s.Status(t.Context()); return err == nil }, patience, time.Millisecond)
	require.NoError(t, s.WaitApplied(t.Context(), group, account("a"), 3))
	number, err := s.Position(t.Context(), group, account("none"))
	require.NoError(t, err)
	assert.Zero(t, number)
}

func TestAReaderDoesNotBelieveAPositionFromBeforeAReset(t *testing.T) {
	t.Parallel()
	testdb.WithFakeTime(t, func(t *testing.T) {
		s := setup(t, 1)
		s.write(t, "a", 0, 1)
		_, messages := subscribe(t, s.quick())
		receive(t, messages).Ack()
		require.NoError(t, s.WaitApplied(t.Context(), group, account("a"), 1))
		require.NoError(t, s.Pause(t.Context()))
		require.NoError(t, s.WaitIdle(t.Context()))
		require.NoError(t, s.Reset(t.Context(), subscriber.Beginning(), nil))
		// A member that has not seen the reset stores a position.
		require.NoError(t, checkpoint.New(s.Journal).PutPosition(t.Context(), checkpoint.Group{Name: group}, account("a"), 1, 1))
		number, err := s.Position(t.Context(), group, account("a"))
		require.NoError(t, err)
		assert.Zero(t, number)
	})
}

func TestAReaderWaitsForAGroupThatIsNotThereYet(t *testing.T) {
	t.Parallel()
	testdb.WithFakeTime(t, func(t *testing.T) {
		s := setup(t, 1)
		s.write(t, "a", 0, 1)
		impatient, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		defer cancel()
		err := s.WaitApplied(impatient, group, account("a"), 1)
		require.ErrorIs(t, err, groups.ErrNoGroup)
		require.ErrorIs(t, err, groups.ErrNotApplied)
		require.ErrorIs(t, err, context.DeadlineExceeded)

		waited := make(chan error, 1)
		go func() { waited <- s.WaitApplied(t.Context(), group, account("a"), 1) }()
		_, messages := subscribe(t, s.quick())
		receive(t, messages).Ack()
		require.NoError(t, <-waited)
	})
}

func TestToWaitForWhatCannotBeFails(t *testing.T) {
	t.Parallel()
	s := setup(t, 1)
	require.ErrorAs(t, s.WaitApplied(t.Context(), group, aggregate.ID{Type: topic}, 1), new(*aggregate.InvalidIDError))
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	require.ErrorIs(t, s.WaitApplied(ended, group, account("a"), 1), context.Canceled)
}

func TestAReaderWhoseTimeIsOverDuringTheFirstReadHasWaited(t *testing.T) {
	t.Parallel()
	s := setup(t, 1)
	ended, cancel := context.WithTimeout(t.Context(), 0)
	defer cancel()
	err := s.WaitApplied(ended, group, account("a"), 1)
	require.ErrorIs(t, err, groups.ErrNotApplied)
	require.ErrorIs(t, err, context.DeadlineExceeded)
}

func TestAReaderDoesNotWaitForATopicThatTheGroupLacks(t *testing.T) {
	t.Parallel()
	testdb.WithFakeTime(t, func(t *testing.T) {
		s := setup(t, 1)
		sub, _ := subscribe(t, s.quick())
		require.NoError(t, sub.WaitJoined(t.Context()))
		begun := time.Now()

		err := s.WaitApplied(t.Context(), group, aggregate.ID{Type: "acount", Value: "a"}, 1)

		assert.Less(t, time.Since(begun), 2*time.Second)
		require.ErrorIs(t, err, groups.ErrNotApplied)
		require.ErrorIs(t, err, groups.ErrNoGroup)
		var lacks *groups.NoTopicError
		require.ErrorAs(t, err, &lacks)
		assert.Equal(t, &groups.NoTopicError{Group: group, Topic: "acount", Topics: []string{topic}}, lacks)
	})
}

// A group joins its topics one after the other.
func TestAReaderWaitsForTheNextTopicOfAGroupThatBegins(t *testing.T) {
	t.Parallel()
	testdb.WithFakeTime(t, func(t *testing.T) {
		s := setup(t, 1)
		sub, _ := subscribe(t, s.quick())
		require.NoError(t, sub.WaitJoined(t.Context()))
		waited := make(chan error, 1)
		go func() { waited <- s.WaitApplied(t.Context(), group, aggregate.ID{Type: "other", Value: "a"}, 0) }()
		time.Sleep(500 * time.Millisecond)

		_, err := sub.Subscribe(t.Context(), "other")

		require.NoError(t, err)
		require.NoError(t, <-waited)
	})
}
