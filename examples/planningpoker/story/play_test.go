package story_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/examples/planningpoker/client"
	"github.com/millrace-dev/millrace/examples/planningpoker/web"
)

var deck = []string{"1", "2", "3"}

// play holds the actions of the users. The seed decides who does what, but not in which order it
// happens.
type play struct {
	t        *testing.T
	rooms    []*game
	progress chan struct{} // receives a value for each command

	done, refused, repeated atomic.Int64
}

// game is the play in one room, with the states that a watcher sees.
type game struct {
	*play
	id      string
	players []*player
	watcher *client.Visitor

	mu    sync.Mutex
	shown uint64
}

type player struct {
	*client.Visitor
	userID, name string
	random       *rand.Rand
}

func newPlay(t *testing.T, servers *servers, seed uint64) *play {
	t.Helper()
	p := &play{t: t, progress: make(chan struct{}, rooms*users*commandsEach)}
	transport := &http.Transport{MaxIdleConnsPerHost: 64}
	t.Cleanup(transport.CloseIdleConnections)
	for n := range rooms {
		g := &game{play: p, watcher: client.New(servers.url((n+1)%2), transport)}
		for m := range users {
			g.players = append(g.players, &player{
				Visitor: client.New(servers.url((n+m)%2), transport), name: fmt.Sprint("User ", m),
				random: rand.New(rand.NewPCG(seed, uint64(2+n*users+m))),
			})
		}
		p.rooms = append(p.rooms, g)
	}
	return p
}

// open opens all rooms. All users join, and learn their user ids.
func (p *play) open(ctx context.Context) {
	p.t.Helper()
	for n, g := range p.rooms {
		for m, player := range g.players {
			require.NoError(p.t, player.Visit(ctx))
			if m == 0 {
				p.untilDone(ctx, func() (err error) {
					g.id, err = player.Open(ctx, client.Body{"name": fmt.Sprint("Room ", n), "deck": deck})
					return err
				})
			}
			p.untilDone(ctx, func() error {
				_, err := player.Do(ctx, g.id, "join?wait=true", client.Body{"name": player.name})
				return err
			})
			require.Eventually(p.t, func() bool {
				r, err := player.Room(ctx, g.id)
				player.userID = r.You
				return err == nil
			}, patience, 10*time.Millisecond, "the room must show")
		}
	}
}

// everybody lets all users play at once.
func (p *play) everybody(ctx context.Context) {
	var playing sync.WaitGroup
	for _, g := range p.rooms {
		for _, who := range g.players {
			playing.Add(1)
			go func() {
				defer playing.Done()
				for range commandsEach {
					command, body := g.next(who)
					p.untilDone(ctx, func() error {
						_, err := who.Do(ctx, g.id, command, body)
						return err
					})
					p.done.Add(1)
					p.progress <- struct{}{}
				}
			}()
		}
	}
	playing.Wait()
}

// next returns the next action of a user.
func (g *game) next(who *player) (command string, body client.Body) {
	switch n := who.random.IntN(100); {
	case n < 57:
		command, body = "pick", client.Body{"card": deck[who.random.IntN(len(deck))]}
	case n < 60:
		command = "reveal"
	case n < 75:
		command, body = "join", client.Body{"name": who.name}
	case n < 87:
		command, body = "refresh", client.Body{"title": fmt.Sprint("Story ", n)}
	case n < 97:
		command = "leave"
	default:
		command, body = "kick", client.Body{"userId": g.players[who.random.IntN(users)].userID}
	}
	if who.random.IntN(4) == 0 {
		command += "?wait=true"
	}
	return command, body
}

// untilDone sends a request again until the server has replied: the server may be down, or its
// database may not reply. A command without a reply may be executed twice, since it has no round.
// The journal shows the result.
func (p *play) untilDone(ctx context.Context, request func() error) {
	for ctx.Err() == nil {
		err := request()
		var problem *client.Problem
		switch {
		case err == nil:
			return
		case errors.As(err, &problem) && problem.Status < http.StatusInternalServerError:
			p.refused.Add(1)
			assert.Contains(p.t, []int{http.StatusConflict, http.StatusForbidden}, problem.Status, "%v", problem)
			return
		}
		p.repeated.Add(1)
		select {
		case <-time.After(10 * time.Millisecond):
		case <-ctx.Done():
		}
	}
	assert.NoError(p.t, ctx.Err(), "a request must be answered in the end")
}

// after calls do once when the given number of commands is done.
func (p *play) after(commands int, do func()) {
	for p.done.Load() < int64(commands) {
		select {
		case <-p.progress:
		case <-time.After(patience):
			assert.Fail(p.t, "the play does not go on")
			return
		}
	}
	do()
}

// watch watches the room as a page does: it reconnects when its stream ends, and its network fails
// at times.
func (g *game) watch(ctx context.Context) {
	for ctx.Err() == nil {
		connected, cut := context.WithTimeout(ctx, 3*time.Second)
		_ = g.watcher.Watch(connected, g.id, func(r web.Room) bool {
			g.mu.Lock()
			defer g.mu.Unlock()
			assert.GreaterOrEqual(g.t, r.Version, g.shown, "a page must not go back")
			g.shown = r.Version
			return false
		})
		cut()
		select {
		case <-time.After(10 * time.Millisecond):
		case <-ctx.Done():
		}
	}
}

func (g *game) waitShown(ctx context.Context, version uint64) {
	assert.Eventually(g.t, func() bool {
		g.mu.Lock()
		defer g.mu.Unlock()
		return g.shown == version || ctx.Err() != nil
	}, patience, 10*time.Millisecond, "the page of %s must show version %d", g.id, version)
}
