package story_test

import (
	"fmt"
	"maps"
	"strconv"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/examples/planningpoker/room"
	"github.com/millrace-dev/millrace/examples/planningpoker/service"
	"github.com/millrace-dev/millrace/projection"
)

// replayed is a room, computed from its events.
type replayed struct {
	version uint64
	state   room.Room
	ever    map[string]string // names of all users so far, by user id
	// Number of writes of rows by all events.
	writes  int
	titles  map[int]string // of the rounds
	results map[int]result // of the rounds that were revealed
}

// result maps users to the cards that they had picked.
type result map[string]string

func roomAggregate(id string) aggregate.ID {
	return aggregate.ID{Type: room.Definition.Type(), Value: id}
}

// replay applies all events of a room to the aggregate, starting with the first.
func replay(t *testing.T, s *service.Service, id string) replayed {
	t.Helper()
	version, err := s.Journal().Version(t.Context(), roomAggregate(id))
	require.NoError(t, err)
	r := replayed{version: version, ever: map[string]string{}, titles: map[int]string{}, results: map[int]result{}}
	for record, err := range s.Journal().Events(t.Context(), roomAggregate(id), 1, version) {
		require.NoError(t, err)
		require.NoError(t, room.Definition.Replay(&r.state, record.EventType, record.Payload))
		r.titles[r.state.Round] = r.state.Title
		event, err := room.Definition.Decode(record.EventType, record.Payload)
		require.NoError(t, err)
		switch e := event.(type) {
		case room.Joined:
			r.ever[e.UserID] = e.Name
			r.writes += 2
		case room.Opened:
			r.writes++
		case room.Revealed:
			r.results[r.state.Round] = maps.Clone(r.state.Cards)
			r.writes++
		case room.TableRefreshed:
			r.writes += 1 + len(e.UserIDs)
		default:
			r.writes += 2
		}
	}
	return r
}

// compare checks every row of the table Room.
func compare(t *testing.T, db *dynamodb.Client, p *play, want map[string]replayed) {
	t.Helper()
	expected := map[string]map[string]string{}
	for _, g := range p.rooms {
		r := want[g.id]
		expires := strconv.FormatInt(r.state.ExpiresAt.Unix(), 10)
		status := "PICKING"
		if r.state.Revealed {
			status = "REVEALED"
		}
		expected[g.id+"/"+g.id] = map[string]string{
			"item_type": "ROOM", "status": status, "name": r.state.Name, "round": strconv.Itoa(r.state.Round), "title": r.state.Title,
			"version": strconv.FormatUint(r.version, 10), "expiration_unix_timestamp": expires,
		}
		for userID, name := range r.ever {
			expected[g.id+"/"+userID] = map[string]string{
				"item_type": "USER", "status": "LEAVED", "name": name, "expiration_unix_timestamp": expires,
			}
		}
		for _, userID := range r.state.Members {
			expected[g.id+"/"+userID]["status"] = "ACTIVE"
			if card := r.state.Cards[userID]; card != "" {
				expected[g.id+"/"+userID]["card"] = card
			}
		}
	}

	found := map[string]map[string]string{}
	scan := dynamodb.NewScanPaginator(db, &dynamodb.ScanInput{TableName: aws.String("Room"), ConsistentRead: aws.Bool(true)})
	for scan.HasMorePages() {
		page, err := scan.NextPage(t.Context())
		require.NoError(t, err)
		for _, item := range page.Items {
			row := map[string]string{}
			for name, value := range item {
				switch v := value.(type) {
				case *types.AttributeValueMemberS:
					row[name] = v.Value
				case *types.AttributeValueMemberN:
					row[name] = v.Value
				}
			}
			key := row["room_id"] + "/" + row["item_key"]
			delete(row, "room_id")
			delete(row, "item_key")
			delete(row, "present_until") // it does not follow from events
			// The view needs these attributes for itself. The version of a user's row is one of
			// them.
			delete(row, "joined")
			if row["item_type"] == "USER" {
				delete(row, "version")
			}
			found[key] = row
		}
	}
	assert.Equal(t, expected, found)
}

// compareReplies queries as one of the players, who sees what the rules allow.
func compareReplies(t *testing.T, p *play, want map[string]replayed) {
	t.Helper()
	for _, g := range p.rooms {
		for _, who := range g.players {
			seen, err := who.Room(t.Context(), g.id)
			require.NoError(t, err)
			r := want[g.id]
			var shown, expected []string
			for _, u := range seen.Users {
				shown = append(shown, fmt.Sprint(u.UserID, u.Name, u.Picked, u.Card))
			}
			for _, userID := range r.state.Members {
				card := r.state.Cards[userID]
				visible := ""
				if r.state.Revealed || userID == who.userID {
					visible = card
				}
				expected = append(expected, fmt.Sprint(userID, r.ever[userID], card != "", visible))
			}
			assert.Equal(t, expected, shown, "in the order in which they joined")
			assert.Equal(t, []any{r.version, r.state.Round, r.state.Revealed}, []any{seen.Version, seen.Round, seen.Revealed})
		}
	}
}

// compareHistories checks the rounds of the rooms that a player sees.
func compareHistories(t *testing.T, p *play, want map[string]replayed) {
	t.Helper()
	for _, g := range p.rooms {
		h, err := g.players[0].History(t.Context(), g.id, 0)
		require.NoError(t, err)
		r := want[g.id]
		shown := r.state.Round - 1
		if r.state.Revealed {
			shown++
		}
		require.Len(t, h.Rounds, shown)
		for i, round := range h.Rounds {
			assert.Equal(t, shown-i, round.Number)
			assert.Equal(t, r.titles[round.Number], round.Title)
			picks := result{}
			for _, pick := range round.Picks {
				picks[pick.UserID] = pick.Card
				assert.Equal(t, r.ever[pick.UserID], pick.Name)
			}
			want, revealed := r.results[round.Number]
			assert.Equal(t, revealed, !round.RevealedAt.IsZero())
			assert.Len(t, picks, len(want))
			assert.Subset(t, picks, want)
		}
	}
}

// againFromTheBeginning runs another consumer group, which applies every event to the view again.
func againFromTheBeginning(t *testing.T, db *dynamodb.Client) projection.Stats {
	t.Helper()
	s, err := service.Open(t.Context(), db, service.Config{})
	require.NoError(t, err)
	view, err := s.Consume("again")
	require.NoError(t, err)
	stop, err := s.Start(t.Context())
	require.NoError(t, err)
	require.NoError(t, s.Settle(t.Context()))
	require.NoError(t, stop())
	return view.Stats()
}
