package console

import (
	"context"
	"errors"

	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/projection/readmodel"
	"github.com/millrace-dev/millrace/subscriber/groups"
)

// modelsView is the page of all read models.
type modelsView struct {
	Table  string     `json:"table"`
	Models []modelRow `json:"models"`
	// NoTable reports that Table does not exist.
	NoTable bool `json:"no_table"`
}

func (modelsView) title() string { return "Read models" }

type modelRow struct {
	Model    string   `json:"model"`
	Serving  uint64   `json:"serving"`
	Previous uint64   `json:"previous"` // 0: none
	Live     []uint64 `json:"live"`
	Form     string   `json:"form"` // form of the serving generation, see readmodel.Generation
}

func modelRowOf(g readmodel.Generations) modelRow {
	row := modelRow{Model: g.Serving.Model, Serving: g.Serving.Number, Previous: g.Previous.Number, Form: g.Serving.Form, Live: []uint64{}}
	for _, live := range g.Live {
		row.Live = append(row.Live, live.Number)
	}
	return row
}

func (r *reading) models(ctx context.Context) (any, error) {
	v := modelsView{Table: r.config.ReadModelTable, Models: []modelRow{}}
	all, err := readmodel.List(ctx, r.config.Journal.Client(), r.config.ReadModelTable)
	if errors.Is(err, journal.ErrTableMissing) {
		v.NoTable = true
		return v, nil
	}
	for _, g := range all {
		v.Models = append(v.Models, modelRowOf(g))
	}
	return v, err
}

// modelView is the page of a read model.
type modelView struct {
	modelRow
	Generations []generationView `json:"generations"`
}

func (v modelView) title() string { return "Read model " + v.Model }

type generationView struct {
	Number   uint64 `json:"number"`
	Form     string `json:"form"`
	Group    string `json:"group"`
	Serving  bool   `json:"serving"`
	Previous bool   `json:"previous"`
	// Progress is nil if it was not read.
	Progress *progressView `json:"progress"`
	// Failed is the reason why there is no progress.
	Failed string `json:"failed,omitempty"`
}

type progressView struct {
	Left    uint64  `json:"left"` // events that are not handled yet
	AtLeast bool    `json:"at_least"`
	Seconds float64 `json:"seconds"` // age of the oldest of them; 0 if it is not known
	Parked  uint64  `json:"parked"`
	// Skipped is at most 1,000. The value 1,000 means 1,000 or more.
	Skipped uint64   `json:"skipped"`
	Begun   bool     `json:"begun"` // it has consumers on all topics
	Paused  []string `json:"paused"`
	Stopped []string `json:"stopped"`
}

func (r *reading) openModel(ctx context.Context, name string) (*readmodel.Model, error) {
	return readmodel.OpenExisting(ctx, r.config.Journal.Client(), readmodel.Config{
		Name: name, Journal: r.config.Journal, Table: r.config.ReadModelTable,
	})
}

func (r *reading) model(ctx context.Context) (any, error) {
	name, err := r.need("name")
	if err != nil {
		return nil, err
	}
	m, err := r.openModel(ctx, name)
	if err != nil {
		return nil, err
	}
	all, err := m.Generations(ctx)
	if err != nil {
		return nil, err
	}
	v := modelView{modelRow: modelRowOf(all), Generations: []generationView{}}
	for _, g := range all.Live {
		row := generationView{Number: g.Number, Form: g.Form, Group: g.Group(), Serving: g == all.Serving, Previous: g == all.Previous}
		if !r.spent() {
			p, err := m.Estimate(ctx, g)
			switch {
			case errors.Is(err, groups.ErrExternalPositions):
				row.Failed = "The positions are in a store that the console cannot read."
			case err != nil:
				return nil, err
			default:
				row.Progress = r.progress(p)
			}
		}
		v.Generations = append(v.Generations, row)
	}
	return v, nil
}

func (r *reading) progress(p readmodel.Progress) *progressView {
	v := &progressView{
		Left: p.Left, AtLeast: p.AtLeast, Parked: p.Parked, Skipped: p.Skipped, Begun: p.Begun,
		Paused: append([]string{}, p.Paused...), Stopped: append([]string{}, p.Stopped...),
	}
	if !p.Oldest.IsZero() {
		v.Seconds = max(r.now.Sub(p.Oldest), 0).Seconds()
	}
	return v
}
