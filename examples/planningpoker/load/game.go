package load

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"sync"
	"time"

	"github.com/millrace-dev/millrace/examples/planningpoker/client"
	"github.com/millrace-dev/millrace/examples/planningpoker/web"
)

var deck = []string{"1", "2", "3", "5", "8"}

// again is the pause before a page reconnects to a stream.
const again = 100 * time.Millisecond

// game is one room with its players and one watcher.
type game struct {
	roomID  string
	players []*client.Visitor
	watcher *client.Visitor
	newUser func() *client.Visitor
	think   time.Duration

	stopWatching context.CancelFunc
	watching     sync.WaitGroup

	mu               sync.Mutex
	commands, failed int
	shown            uint64 // the version on the page
	unshown          map[uint64]time.Time
	latencies        []time.Duration
	moved            chan struct{} // signals that shown has increased
}

func newGame(players, watcher func() string, transport http.RoundTripper, config Config) *game {
	return &game{
		newUser: func() *client.Visitor { return client.New(players, transport) },
		watcher: client.New(watcher, transport),
		think:   config.Think, unshown: map[uint64]time.Time{}, moved: make(chan struct{}, 1),
	}
}

// open opens the room, makes all users join and starts to watch.
func (g *game) open(ctx context.Context, users int) (err error) {
	for n := range users {
		player := g.newUser()
		if err := player.Visit(ctx); err != nil {
			return err
		}
		if n == 0 {
			if g.roomID, err = player.Open(ctx, client.Body{"name": "Load", "deck": deck}); err != nil {
				return err
			}
		}
		if _, err := player.Do(ctx, g.roomID, "join?wait=true", client.Body{"name": fmt.Sprint("Player ", n+1)}); err != nil {
			return err
		}
		g.players = append(g.players, player)
	}
	watching, stop := context.WithCancel(ctx)
	g.stopWatching = stop
	g.watching.Add(1)
	go func() {
		defer g.watching.Done()
		for watching.Err() == nil { // as a browser does when a stream ends
			_ = g.watcher.Watch(watching, g.roomID, g.show)
			select {
			case <-watching.Done():
			case <-time.After(again):
			}
		}
	}()
	return nil
}

// play plays rounds until the context playing ends: all users pick, and then one refreshes the
// table. Requests in progress then continue with ctx.
func (g *game) play(playing, ctx context.Context) error {
	for round := 0; playing.Err() == nil; round++ {
		var picking sync.WaitGroup
		for _, player := range g.players {
			picking.Add(1)
			go func() {
				defer picking.Done()
				if g.pause(playing) {
					g.command(ctx, player, "pick", client.Body{"card": deck[rand.IntN(len(deck))]})
				}
			}()
		}
		picking.Wait()
		if playing.Err() == nil {
			g.command(ctx, g.players[round%len(g.players)], "refresh", nil)
		}
	}
	return ctx.Err()
}

// pause waits, and reports whether there is time left after it.
func (g *game) pause(playing context.Context) bool {
	if g.think <= 0 {
		return playing.Err() == nil
	}
	select {
	case <-playing.Done():
		return false
	case <-time.After(rand.N(2 * g.think)):
		return true
	}
}

func (g *game) command(ctx context.Context, player *client.Visitor, command string, body client.Body) {
	version, err := player.Do(ctx, g.roomID, command, body)
	replied := time.Now()
	g.mu.Lock()
	defer g.mu.Unlock()
	switch {
	case err != nil:
		g.failed++
		return
	case version <= g.shown:
		g.latencies = append(g.latencies, 0)
	default:
		g.unshown[version] = replied
	}
	g.commands++
}

// show records the version that the page shows.
func (g *game) show(r web.Room) (enough bool) {
	now := time.Now()
	g.mu.Lock()
	defer g.mu.Unlock()
	g.shown = max(g.shown, r.Version)
	for version, replied := range g.unshown {
		if version <= g.shown {
			g.latencies = append(g.latencies, now.Sub(replied))
			delete(g.unshown, version)
		}
	}
	select {
	case g.moved <- struct{}{}:
	default:
	}
	return false
}

// pending returns the number of commands that the page has not shown.
func (g *game) pending() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return len(g.unshown)
}

// finish waits until the page shows all commands, and stops watching.
func (g *game) finish(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for g.pending() > 0 && ctx.Err() == nil {
		select {
		case <-g.moved:
		case <-ctx.Done():
		}
	}
	g.stop()
}

// stop stops watching, if it has started.
func (g *game) stop() {
	if g.stopWatching != nil {
		g.stopWatching()
	}
	g.watching.Wait()
}
