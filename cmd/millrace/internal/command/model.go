package command

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/millrace-dev/millrace/cmd/millrace/internal/output"
	"github.com/millrace-dev/millrace/projection/readmodel"
)

// modelLine is a read model.
type modelLine struct {
	Kind     string   `json:"kind"` // "model"
	Model    string   `json:"model"`
	Serving  uint64   `json:"serving"`
	Form     string   `json:"form,omitempty"`     // form of the serving generation
	Previous uint64   `json:"previous,omitempty"` // none: nothing to roll back to
	Live     []uint64 `json:"live"`
}

var modelColumns = []output.Column[modelLine]{
	{Name: "MODEL", Cell: func(m modelLine) string { return m.Model }},
	{Name: "SERVING", Cell: func(m modelLine) string { return strconv.FormatUint(m.Serving, 10) }},
	{Name: "FORM", Cell: func(m modelLine) string { return orDash(m.Form) }},
	{Name: "PREVIOUS", Cell: func(m modelLine) string {
		if m.Previous == 0 {
			return "-"
		}
		return strconv.FormatUint(m.Previous, 10)
	}},
	{Name: "LIVE", Cell: func(m modelLine) string { return strings.Trim(fmt.Sprint(m.Live), "[]") }},
}

// generationLine is a generation of a read model.
type generationLine struct {
	Kind       string `json:"kind"` // "generation"
	Model      string `json:"model"`
	Generation uint64 `json:"generation"`
	Form       string `json:"form,omitempty"`
	Group      string `json:"group"`
	State      string `json:"state"` // "serving", "previous", "live"
	*progressLine
}

// progressLine is the progress of a generation.
type progressLine struct {
	Begun         bool     `json:"begun"`
	Events        uint64   `json:"events"`
	ParkedEvents  uint64   `json:"parked_events"`
	SkippedEvents uint64   `json:"skipped_events"`    // 1,000 means 1,000 or more
	Paused        []string `json:"paused,omitempty"`  // topics on which the group is paused
	Stopped       []string `json:"stopped,omitempty"` // topics on which the group is stopped
	AtLeast       bool     `json:"at_least"`          // there may be more events
}

func newGenerationLine(all readmodel.Generations, g readmodel.Generation) generationLine {
	l := generationLine{Kind: "generation", Model: g.Model, Generation: g.Number, Form: g.Form, Group: g.Group(), State: "live"}
	switch g.Number {
	case all.Serving.Number:
		l.State = "serving"
	case all.Previous.Number:
		l.State = "previous"
	}
	return l
}

// orDash returns the text for a cell of a table: a dash if it is empty.
func orDash(text string) string {
	if text == "" {
		return "-"
	}
	return text
}

func newProgressLine(p readmodel.Progress) *progressLine {
	return &progressLine{
		Begun: p.Begun, Events: p.Left, ParkedEvents: p.Parked, SkippedEvents: p.Skipped, Paused: p.Paused, Stopped: p.Stopped, AtLeast: p.AtLeast,
	}
}

func (l *progressLine) left() string {
	switch {
	case !l.Begun:
		return "not begun"
	case l.AtLeast:
		return output.Count(l.Events) + "+"
	}
	return output.Count(l.Events)
}

func (l *progressLine) skipped() string {
	if l.SkippedEvents >= 1000 {
		return output.Count(l.SkippedEvents) + "+"
	}
	return output.Count(l.SkippedEvents)
}

// rests lists the topics on which a generation's group is paused or stopped. It is empty if there
// is none.
func (l *progressLine) rests() string {
	var why []string
	if len(l.Stopped) > 0 {
		why = append(why, "stopped on "+strings.Join(l.Stopped, ", "))
	}
	paused := slices.DeleteFunc(slices.Clone(l.Paused), func(topic string) bool { return slices.Contains(l.Stopped, topic) })
	if len(paused) > 0 {
		why = append(why, "paused on "+strings.Join(paused, ", "))
	}
	return strings.Join(why, ", ")
}

var generationColumns = []output.Column[generationLine]{
	{Name: "GENERATION", Cell: func(g generationLine) string { return strconv.FormatUint(g.Generation, 10) }},
	{Name: "FORM", Cell: func(g generationLine) string { return orDash(g.Form) }},
	{Name: "STATE", Cell: func(g generationLine) string { return g.State }},
	{Name: "GROUP", Cell: func(g generationLine) string { return g.Group }},
	{Name: "LEFT", Cell: func(g generationLine) string { return g.left() }},
	{Name: "PARKED", Cell: func(g generationLine) string { return output.Count(g.ParkedEvents) }},
	{Name: "SKIPPED", Cell: func(g generationLine) string { return g.skipped() }},
	{Name: "RESTS", Cell: func(g generationLine) string { return orDash(g.rests()) }},
}

// modelOptions are the flags of all commands on read models.
type modelOptions struct {
	topics []string
}

func (a *app) model() *cobra.Command {
	var o modelOptions
	exact := false
	cmd := &cobra.Command{
		Use:   "model [NAME] [flags]",
		Short: "List the read models, or the generations of one; rebuild one",
		Long: `List the read models of package readmodel, or the generations of one read model. A generation is a
set of tables that consumers fill from the history. Queries read the serving generation. To rebuild a
read model, use these commands while the serving generation stays in use:

  begin       begins a generation: consumers start to fill its tables
  catch-up    waits until it is up to date
  switch      makes queries read it
  rollback    makes queries read the previous generation, which was kept up to date
  drop        removes a generation that is not needed any more

The columns of generations:

  FORM     the name of the tables' structure (readmodel.Config.Forms); - if programs set none
  LEFT     number of events that the generation has not handled; an estimate, unless --exact is set;
           "not begun" until it has consumers on all topics
  PARKED   number of these events that wait for an operator
  SKIPPED  number of events that it has skipped (millrace group skipped); they are not part of LEFT,
           and their changes are missing
  RESTS    topics on which its group is paused, or was stopped by an event that kept failing (millrace
           group resume)

The topics of a generation are the topics of its own groups and of the groups of the serving
generation, unless --topic sets them. The estimate costs the same as in millrace groups. --exact
compares all heads with the positions.`,
		Example: "  millrace model\n  millrace model orders\n  millrace model begin orders && millrace model catch-up orders && millrace model switch orders",
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 1 {
				return fmt.Errorf("%s does not take the argument %q", cmd.Name(), args[1])
			}
			return nil
		},
		RunE: a.does(func(cmd *cobra.Command, args []string) error {
			if len(args) == 1 {
				return a.runModel(cmd.Context(), o, args[0], exact)
			}
			return a.runModels(cmd.Context())
		}),
	}
	cmd.Flags().BoolVar(&exact, "exact", false, "compare all heads with the positions")
	cmd.PersistentFlags().StringSliceVar(&o.topics, "topic", nil, "`topic` that a generation consumes, instead of the topics of the groups; can be repeated")
	cmd.AddCommand(a.beginModel(&o), a.catchUpModel(&o), a.switchModel(&o), a.rollbackModel(&o), a.dropModel(&o))
	return cmd
}

// openModel opens an existing read model. config has the settings of the command, apart from the
// common options.
func (a *app) openModel(ctx context.Context, o modelOptions, name string, config readmodel.Config) (*readmodel.Model, error) {
	j, err := a.open(ctx)
	if err != nil {
		return nil, err
	}
	config.Name, config.Journal, config.Table, config.Topics = name, j, a.tables.model, o.topics
	m, err := readmodel.OpenExisting(ctx, j.Client(), config)
	return m, explainModel(err)
}

func explainModel(err error) error {
	return tableMissing(err, "Programs create the table (readmodel.CreateTable). --model-table sets another name.")
}

func (a *app) runModels(ctx context.Context) error {
	client, err := a.connect(ctx)
	if err != nil {
		return err
	}
	all, err := readmodel.List(ctx, client, a.tables.model)
	if err != nil {
		return explainModel(err)
	}
	if len(all) == 0 && !a.json {
		a.note("No read models. A read model is created when a program first opens it.")
	}
	rows := output.NewRows(a.env.Out, a.json, modelColumns...)
	for _, g := range all {
		l := modelLine{Kind: "model", Model: g.Serving.Model, Serving: g.Serving.Number, Form: g.Serving.Form, Previous: g.Previous.Number, Live: []uint64{}}
		for _, live := range g.Live {
			l.Live = append(l.Live, live.Number)
		}
		if err := rows.Print(l); err != nil {
			return err
		}
	}
	return rows.Flush()
}

func (a *app) runModel(ctx context.Context, o modelOptions, name string, exact bool) error {
	m, err := a.openModel(ctx, o, name, readmodel.Config{})
	if err != nil {
		return err
	}
	all, err := m.Generations(ctx)
	if err != nil {
		return err
	}
	read := m.Estimate
	if exact {
		read = m.Progress
	}
	rows := output.NewRows(a.env.Out, a.json, generationColumns...)
	for _, g := range all.Live {
		p, err := read(ctx, g)
		if err != nil {
			return errors.Join(rows.Flush(), err)
		}
		l := newGenerationLine(all, g)
		l.progressLine = newProgressLine(p)
		if err := rows.Print(l); err != nil {
			return err
		}
	}
	return rows.Flush()
}
