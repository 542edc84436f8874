package repository_test

import (
	"encoding/json"
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/repository"
)

// addressed adds id and number to the payload, where other programs expect them.
func addressed(info repository.EventInfo) ([]byte, error) {
	fields := map[string]any{}
	if err := json.Unmarshal(info.Payload, &fields); err != nil {
		return nil, err
	}
	fields["aid"], fields["seq_nr"], fields["id"], fields["type"] = info.Aggregate.String(), info.Number, info.ID, info.Type
	return json.Marshal(fields)
}

func TestEventPayloadIsToldWhichEventItWrites(t *testing.T) {
	t.Parallel()
	s := setup(t)
	repo := s.accounts(t, repository.Config{EventPayload: addressed})
	mustExecute(t, repo, "42", Deposit(1))
	a := mustLoad(t, repo, "42")
	mustSave(t, repo, a, Events{Deposited{2}, Withdrawn{3}})

	want := []map[string]any{
		{"Amount": 1.0, "aid": "account-42", "seq_nr": 1.0, "type": "account.deposited.v1"},
		{"Amount": 2.0, "aid": "account-42", "seq_nr": 2.0, "type": "account.deposited.v1"},
		{"Amount": 3.0, "aid": "account-42", "seq_nr": 3.0, "type": "account.withdrawn.v1"},
	}
	records := s.records(t, account("42"))
	require.Len(t, records, len(want))
	for i, record := range records {
		want[i]["id"] = record.EventID
		stored := map[string]any{}
		require.NoError(t, json.Unmarshal(record.Payload, &stored))
		assert.Equal(t, want[i], stored)
	}
}

func TestAnEventThatEventPayloadRefusesOrSpoilsIsNotWritten(t *testing.T) {
	t.Parallel()
	s := setup(t)
	refused := errors.New("no place for it")
	repo := s.accounts(t, repository.Config{EventPayload: func(repository.EventInfo) ([]byte, error) { return nil, refused }})
	_, err := repo.Execute(t.Context(), "42", Deposit(1))
	require.ErrorIs(t, err, refused)
	require.ErrorAs(t, err, new(*aggregate.UnencodableEventError))

	repo = s.accounts(t, repository.Config{EventPayload: func(repository.EventInfo) ([]byte, error) { return []byte("spoilt"), nil }})
	_, err = repo.Execute(t.Context(), "42", Deposit(1))
	require.ErrorAs(t, err, new(*aggregate.MalformedEventError))

	_, err = repo.Load(t.Context(), "42")
	assert.ErrorIs(t, err, journal.ErrNotFound)
}
