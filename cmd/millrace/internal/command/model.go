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
	Form     string   `json:"form,omitempty"`     // of what serves
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

// progressLine is how far a generation is.
type progressLine struct {
	Begun         bool     `json:"begun"`
	Events        uint64   `json:"events"`
	ParkedEvents  uint64   `json:"parked_events"`
	SkippedEvents uint64   `json:"skipped_events"`    // 1,000 for that many or more
	Paused        []string `json:"paused,omitempty"`  // topics
	Stopped       []string `json:"stopped,omitempty"` // topics, which are paused then
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

// orDash is what may be empty, as tables show it.
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

// rests lists the topics on which a generation's group does nothing, empty for none.
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
		Short: "List the read models, or the generations of one; build one anew",
		Long: `List the read models of package readmodel, or the generations of one. The commands below build the next generation while the one that
serves goes on:

  begin       the programs' consumers start to fill its tables with history
  catch-up    waits until it is up to date
  switch      queries read it
  rollback    queries read the one before again, which was kept up to date
  drop        gives up the one that is not needed

FORM is what a generation's tables contain, as the programs name it (readmodel.Config.Forms); "-" if they do not.

LEFT is how many events a generation has not handled yet, PARKED how many of these wait until someone decides. SKIPPED are those that
it has passed over (millrace group skipped): they are not left, and what they should have changed is missing. RESTS says on which
topics its group is paused, or was stopped by an event that kept failing (millrace group resume). A generation has
"not begun" until it has consumers on all topics: those that its own groups and the groups of the serving generation are on, unless
--topic says otherwise.

LEFT is an estimate, as in millrace groups, which tells what it costs; --exact compares all heads with the positions.`,
		Example: "  millrace model\n  millrace model orders\n  millrace model begin orders && millrace model catch-up orders && millrace model switch orders",
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 1 {
				return fmt.Errorf("%s has no use for %q", cmd.Name(), args[1])
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
	cmd.PersistentFlags().StringSliceVar(&o.topics, "topic", nil, "`topic` that a generation consumes, instead of what the groups tell; may be repeated")
	cmd.AddCommand(a.beginModel(&o), a.catchUpModel(&o), a.switchModel(&o), a.rollbackModel(&o), a.dropModel(&o))
	return cmd
}

// openModel opens a read model that is there. Config says what the command lets others say than the
// options of all.
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
	return tableMissing(err, "Has the application a prefix? --prefix or $"+prefixEnv+" begins the name with it, --model-table names the table. The programs make it.")
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
		a.note("No read models. One comes into being when a program first opens it.")
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
	look := m.Estimate
	if exact {
		look = m.Progress
	}
	rows := output.NewRows(a.env.Out, a.json, generationColumns...)
	for _, g := range all.Live {
		p, err := look(ctx, g)
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
