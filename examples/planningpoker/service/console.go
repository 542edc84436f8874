package service

import (
	"encoding/json"
	"net"
	"net/http"

	"github.com/ThreeDotsLabs/watermill"

	"github.com/millrace-dev/millrace/console"
)

// withConsole mounts the console under /console/ if only this machine can reach the server, since
// the console shows all rooms to every visitor.
func (s *Service) withConsole(at net.Addr, api http.Handler) (handler http.Handler, end func(), err error) {
	if tcp, ok := at.(*net.TCPAddr); !ok || !tcp.IP.IsLoopback() || s.config.Host != "" {
		return api, func() {}, nil
	}
	c, err := console.New(console.Config{App: s, Redact: withoutCards, Logger: watermill.NewSlogLogger(s.config.Logger)})
	if err != nil {
		return nil, nil, err
	}
	mux := http.NewServeMux()
	mux.Handle("/", api)
	mux.Handle("/console/", c)
	return mux, c.Close, nil
}

// withoutCards hides the cards in events and states, because a player could read them there.
func withoutCards(p console.Payload) []byte {
	fields := map[string]any{}
	if p.Kind == console.MetadataPayload || json.Unmarshal(p.Data, &fields) != nil {
		return p.Data
	}
	for _, name := range []string{"card", "cards"} {
		if _, ok := fields[name]; ok {
			fields[name] = "hidden"
		}
	}
	shown, err := json.Marshal(fields)
	if err != nil {
		return nil
	}
	return shown
}
