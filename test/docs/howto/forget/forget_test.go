package forget

import (
	"bytes"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/dynamotest"
	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/journal/archive"
	"github.com/millrace-dev/millrace/journal/encrypt"
)

// world is a service that runs, and has the person 7 whose name is Ada.
func world(t *testing.T) (*dynamodb.Client, *Service) {
	t.Helper()
	client := dynamotest.New(t).Client()
	wrapper, err := encrypt.LocalWrapper(make([]byte, encrypt.KeyBytes))
	require.NoError(t, err)
	s, err := Open(t.Context(), client, wrapper)
	require.NoError(t, err)
	stop, err := s.app.Start(t.Context())
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, stop()) })
	ada, err := s.persons.Execute(t.Context(), "7", Register("Ada"))
	require.NoError(t, err)
	require.NoError(t, s.app.Groups().WaitApplied(t.Context(), "names", ada.ID, ada.Version))
	return client, s
}

func rows(t *testing.T, client *dynamodb.Client, s *Service) int {
	t.Helper()
	found, err := client.Scan(t.Context(), &dynamodb.ScanInput{TableName: &s.names.Name})
	require.NoError(t, err)
	return len(found.Items)
}

func TestNothingShowsAForgottenPerson(t *testing.T) {
	t.Parallel()
	client, s := world(t)
	require.Equal(t, 1, rows(t, client, s))
	var before bytes.Buffer
	_, err := archive.Export(t.Context(), s.app.Journal(), &before, archive.ExportOptions{})
	require.NoError(t, err)

	require.ErrorIs(t, s.Forget(t.Context(), "seven"), ErrUnknown, "a misspelled id must not look forgotten")
	require.NoError(t, s.Forget(t.Context(), "7"))
	require.NoError(t, s.Forget(t.Context(), "7"), "again")

	assert.Zero(t, rows(t, client, s))
	_, err = s.persons.Load(t.Context(), "7")
	require.ErrorIs(t, err, journal.ErrKeyDestroyed)
	assert.Contains(t, before.String(), "person.registered.v1")
	assert.NotContains(t, before.String(), "Ada")
}

func TestADeletedPersonIsGone(t *testing.T) {
	t.Parallel()
	client, s := world(t)

	require.NoError(t, s.Delete(t.Context(), "7", "names"))
	require.NoError(t, s.Delete(t.Context(), "7", "names"), "again")

	assert.Zero(t, rows(t, client, s))
	_, err := s.persons.Load(t.Context(), "7")
	require.ErrorAs(t, err, new(*journal.DeletedError))
}
