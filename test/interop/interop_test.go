package interop_test

import (
	"fmt"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/journal/resolver"
	"github.com/millrace-dev/millrace/repository"
)

func TestTablesOfThePeerAreAdoptedAndSharedBothWays(t *testing.T) {
	for name, options := range map[string]object{
		"without redundancy":               nil,
		"with keepSnapshotCount and a TTL": {"keepSnapshotCount": 1, "deleteTtlDays": 1},
	} {
		t.Run(name, func(t *testing.T) {
			client, config := setup(t), peerConfig
			peer := startPeer(t, client, config, options)
			peer.do("createTables", object{})
			const accounts = 12
			for i := range accounts {
				id := fmt.Sprint("konto-", i, "-ü")
				peer.open(id, "Ann")
				for n := range i { // the snapshot of the last account is of event 11 of 12
					peer.deposit(id, 10, n%3 == 0)
				}
			}

			_, err := journal.Open(t.Context(), client, config)
			require.ErrorIs(t, err, journal.ErrNoDescriptor)
			require.ErrorIs(t, journal.Adopt(t.Context(), client, config), journal.ErrTableMissing)
			addTailIndex(t, client, "journal")
			wrong := config
			wrong.Classic.Resolver = resolver.JavaHash
			require.ErrorAs(t, journal.Adopt(t.Context(), client, wrong), new(*journal.DescriptorMismatchError))
			require.NoError(t, journal.Adopt(t.Context(), client, config))

			ours := open(t, client, config, repository.Every(4))
			for i := range accounts {
				id := fmt.Sprint("konto-", i, "-ü")
				want, version := Account{"Ann", 10 * i}, uint64(1+i)
				requireSame(t, ours, peer, id, want, version)

				ours.execute(id, Deposited{5}) // with a snapshot or without
				want.Balance, version = want.Balance+5, version+1
				requireSame(t, ours, peer, id, want, version)

				ours.execute(id, Deposited{1}, Deposited{2}, Deposited{3}) // one commit
				want.Balance, version = want.Balance+6, version+3
				requireSame(t, ours, peer, id, want, version)

				peer.deposit(id, 7, false) // beside Millrace's snapshot
				want.Balance, version = want.Balance+7, version+1
				requireSame(t, ours, peer, id, want, version)

				peer.deposit(id, 8, true) // in place of Millrace's snapshot
				want.Balance, version = want.Balance+8, version+1
				requireSame(t, ours, peer, id, want, version)

				ours.execute(id, Deposited{9})
				want.Balance, version = want.Balance+9, version+1
				requireSame(t, ours, peer, id, want, version)
			}
		})
	}
}

func TestAccountsThatBeginInOurTablesAreContinuedByThePeer(t *testing.T) {
	client := setup(t)
	createTables(t, client)
	ours, peer := open(t, client, peerConfig, repository.Never), startPeer(t, client, peerConfig, nil)

	ours.execute("1", Opened{"Bob"}, Deposited{100}) // a first commit of two events
	requireSame(t, ours, peer, "1", Account{"Bob", 100}, 2)
	peer.deposit("1", 10, false)
	requireSame(t, ours, peer, "1", Account{"Bob", 110}, 3)
	peer.deposit("1", 1, true)
	requireSame(t, ours, peer, "1", Account{"Bob", 111}, 4)
	ours.execute("1", Deposited{1000})
	requireSame(t, ours, peer, "1", Account{"Bob", 1111}, 5)

	peer.open("2", "Cleo")
	ours.execute("2", Deposited{3})
	requireSame(t, ours, peer, "2", Account{"Cleo", 3}, 2)
	assert.Contains(t, peer.ask("open", object{"id": "1", "owner": "Eve"}, nil), "OptimisticLockError", "it is taken")
}

func TestConcurrentWritersOfBothKindsLoseNothingAndLeaveNoGap(t *testing.T) {
	client := setup(t)
	createTables(t, client)
	ours := open(t, client, peerConfig, repository.Every(5))
	ours.execute("1", Opened{"Dan"})

	const writers, deposits = 2, 30 // of each kind
	var conflicts [writers]struct {
		Conflicts int `json:"conflicts"`
	}
	var all sync.WaitGroup
	for i := range writers {
		peer := startPeer(t, client, peerConfig, nil)
		all.Add(2)
		go func() {
			defer all.Done()
			assert.Empty(t, peer.ask("depositMany", object{"id": "1", "count": deposits}, &conflicts[i]))
		}()
		go func() {
			defer all.Done()
			for range deposits {
				_, err := ours.Execute(t.Context(), "1", func(Account) (aggregate.Events[Account], error) {
					return aggregate.Events[Account]{Deposited{1}}, nil
				})
				assert.NoError(t, err)
			}
		}()
	}
	all.Wait()

	requireSame(t, ours, startPeer(t, client, peerConfig, nil), "1", Account{"Dan", 2 * writers * deposits}, 2*writers*deposits+1)
	var byPeers int
	for _, record := range ours.records("1") {
		if record.CommitID == "" { // only Millrace's records have one
			byPeers++
		}
	}
	assert.Equal(t, writers*deposits, byPeers)
	t.Logf("the peers met %d and %d conflicts", conflicts[0].Conflicts, conflicts[1].Conflicts)
}

// event-store-adapter-js has the name seq_nr in its expressions, so it cannot share such tables.
// The test copies rows that it wrote into them, as a program that can would have written them.
func TestTablesThatSaySerNrAreSharedByOurSide(t *testing.T) {
	client := setup(t)
	createTables(t, client)
	peer := startPeer(t, client, peerConfig, nil)
	peer.open("1", "Fay")
	for n := range 20 {
		peer.deposit("1", 10, n == 5)
	}
	document := peerConfig
	document.Tables = journal.Tables{Journal: "letter-journal", Snapshot: "letter-snapshot", Checkpoint: "letter-checkpoint"}
	document.Classic.Attributes.SequenceNumber = "ser_nr"
	createDocumentTables(t, client, document)
	copyRows(t, client, peerConfig.Tables.Journal, document.Tables.Journal)
	copyRows(t, client, peerConfig.Tables.Snapshot, document.Tables.Snapshot)
	// The last step, because DynamoDB Local fails writes while it makes an index.
	addTailIndex(t, client, document.Tables.Journal)

	require.NoError(t, journal.Adopt(t.Context(), client, document))
	ours := open(t, client, document, repository.Every(10))
	a := ours.load("1")
	assert.Equal(t, Account{"Fay", 200}, a.State)
	assert.EqualValues(t, 21, a.Version)
	ours.execute("1", Deposited{1}, Deposited{2})
	assert.Equal(t, Account{"Fay", 203}, ours.load("1").State)
	assert.Len(t, ours.records("1"), 23)

	astray := startPeer(t, client, document, nil)
	refusal := astray.ask("load", object{"id": "1"}, nil)
	assert.Contains(t, refusal, "ValidationException", "the peer must say so rather than misread")
	astray.open("2", "Gus") // no condition forbids it
	for _, err := range ours.journal.Events(t.Context(), aggregate.ID{Type: "account", Value: "2"}, 1, 1) {
		assert.ErrorAs(t, err, new(*journal.CorruptItemError), "nor do we misread what it writes there")
	}
}
