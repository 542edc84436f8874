package command

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/millrace-dev/millrace/cmd/millrace/internal/output"
	"github.com/millrace-dev/millrace/projection/readmodel"
)

func (a *app) beginModel(o *modelOptions) *cobra.Command {
	var form string
	cmd := &cobra.Command{
		Use:   "begin NAME [flags]",
		Short: "Begin a new generation",
		Long: `Begin a new generation of a read model. The programs that consume the read model see it within a
second (readmodel.Config.Refresh), and read history. Each run of the command begins another one.

The new generation has the form of the serving generation: the name of the tables' structure
(readmodel.Config.Forms). For another form, deploy the programs that know it first, and then begin it
with --form. Programs ignore generations whose form they do not know.`,
		Example: "  millrace model begin orders\n  millrace model begin orders --form 2",
		Args:    wants("NAME"),
		RunE: a.does(func(cmd *cobra.Command, args []string) error {
			config := readmodel.Config{}
			if cmd.Flags().Changed("form") {
				config.Forms = []string{form}
			}
			m, err := a.openModel(cmd.Context(), *o, args[0], config)
			if err != nil {
				return err
			}
			next, err := m.Begin(cmd.Context())
			if err != nil {
				return err
			}
			return a.showGeneration(cmd.Context(), m, next, nil)
		}),
	}
	cmd.Flags().StringVar(&form, "form", "", "`form` of the generation, one of the programs' readmodel.Config.Forms; default is the form of the serving generation")
	return cmd
}

func (a *app) catchUpModel(o *modelOptions) *cobra.Command {
	var config readmodel.Config
	cmd := &cobra.Command{
		Use:   "catch-up NAME [GENERATION] [flags]",
		Short: "Wait until a generation is up to date",
		Long: `Wait until a generation lags by at most --max-lag events, none of them older than --max-delay.
Default is the newest generation.

An exact poll compares all heads with the positions, so it costs the same as groups --exact. There is
an exact poll after each tenth of the remaining time. Without progress the intervals grow up to 10
seconds. Exact polls take at most a fifth of the time; in between the command estimates the lag.`,
		Args: wantsGeneration(false),
		RunE: a.does(func(cmd *cobra.Command, args []string) error {
			m, g, err := a.generation(cmd.Context(), *o, args, config)
			if err != nil {
				return err
			}
			progress, last := a.showProgress(), readmodel.Progress{}
			err = m.CatchUp(cmd.Context(), g, func(p readmodel.Progress) {
				last = p
				progress.Show(func(time.Duration) string { return catchingUp(g, p) })
			})
			progress.Done()
			if err != nil {
				return err
			}
			return a.showGeneration(cmd.Context(), m, g, newProgressLine(last))
		}),
	}
	registerMaxLag(cmd, &config)
	return cmd
}

func catchingUp(g readmodel.Generation, p readmodel.Progress) string {
	if !p.Begun {
		return fmt.Sprintf("%s: waiting for consumers on all topics", g)
	}
	text := fmt.Sprintf("%s: %s left", g, output.Counted(p.Left, "event", "events"))
	if p.Parked > 0 {
		text += fmt.Sprintf(", %s of them parked", output.Count(p.Parked))
	}
	if rests := newProgressLine(p).rests(); rests != "" {
		text += ", " + rests
	}
	if p.Rate > 0 {
		text += fmt.Sprintf(", %s a second, %s to go", output.Count(int64(p.Rate)), p.Remaining().Round(time.Second))
	}
	return text
}

func registerMaxLag(cmd *cobra.Command, config *readmodel.Config) {
	cmd.Flags().Uint64Var(&config.MaxLag, "max-lag", 100, "`number` of events, 1 or more, by which a generation may lag and still count as up to date")
	cmd.Flags().DurationVar(&config.MaxDelay, "max-delay", 10*time.Second, "maximum `age` of the oldest of these events")
}

func (a *app) switchModel(o *modelOptions) *cobra.Command {
	var config readmodel.Config
	cmd := &cobra.Command{
		Use:   "switch NAME [GENERATION] [flags]",
		Short: "Make queries read a generation",
		Long: `Make queries read a generation, in one write. Default is the newest generation. It is refused if the
generation lags by more than --max-lag events, or if one of them is older than --max-delay. The
previous generation is kept up to date, for a rollback, until it is dropped.`,
		Args: wantsGeneration(false),
		RunE: a.does(func(cmd *cobra.Command, args []string) error {
			m, g, err := a.generation(cmd.Context(), *o, args, config)
			if err != nil {
				return err
			}
			if err := m.Switch(cmd.Context(), g); err != nil {
				return err
			}
			return a.showGeneration(cmd.Context(), m, g, nil)
		}),
	}
	registerMaxLag(cmd, &config)
	return cmd
}

func (a *app) rollbackModel(o *modelOptions) *cobra.Command {
	return &cobra.Command{
		Use:   "rollback NAME [GENERATION] [flags]",
		Short: "Make queries read the previous generation again",
		Long: `Make queries read the previous generation again. GENERATION is the generation that serves now. If it
is set and does not serve any more, the command does nothing, so that a repeated command does not
switch back.`,
		Args: wantsGeneration(false),
		RunE: a.does(func(cmd *cobra.Command, args []string) error {
			m, err := a.openModel(cmd.Context(), *o, args[0], readmodel.Config{})
			if err != nil {
				return err
			}
			var from readmodel.Generation
			if len(args) > 1 {
				from, err = generationOf(args[0], args[1])
			} else {
				from, err = m.Serving(cmd.Context())
			}
			if err != nil {
				return err
			}
			serves, err := m.Rollback(cmd.Context(), from)
			if err != nil {
				return err
			}
			return a.showGeneration(cmd.Context(), m, serves, nil)
		}),
	}
}

// wantsGeneration checks the arguments NAME and GENERATION. GENERATION is optional unless needed is
// true.
func wantsGeneration(needed bool) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) == 1 && !needed {
			return nil
		}
		return wants("NAME", "GENERATION")(cmd, args)
	}
}

// generationOf reads a number, or the name of the generation's group.
func generationOf(model, text string) (readmodel.Generation, error) {
	n, err := strconv.ParseUint(strings.TrimPrefix(text, model+"."), 10, 64)
	if err != nil || n == 0 {
		return readmodel.Generation{}, wrongUsage("%q is not a generation: want a number such as 2, or %s.2", text, model)
	}
	return readmodel.Generation{Model: model, Number: n}, nil
}

// generation opens a read model. It returns the generation of the arguments, or by default the
// newest generation, which must be newer than the serving one.
func (a *app) generation(ctx context.Context, o modelOptions, args []string, config readmodel.Config) (*readmodel.Model, readmodel.Generation, error) {
	if config.MaxLag == 0 {
		return nil, readmodel.Generation{}, wrongUsage("--max-lag is 0: want 1 or more")
	}
	var g readmodel.Generation
	var err error
	if len(args) > 1 {
		if g, err = generationOf(args[0], args[1]); err != nil {
			return nil, g, err
		}
	}
	m, err := a.openModel(ctx, o, args[0], config)
	if err != nil || g.Number > 0 {
		return m, g, err
	}
	all, err := m.Generations(ctx)
	if err != nil {
		return nil, g, err
	}
	if g = all.Live[len(all.Live)-1]; g.Number <= all.Serving.Number {
		return nil, g, fmt.Errorf("no generation of read model %s is newer than the serving generation %s: begin one, or pass a generation", args[0], all.Serving)
	}
	return m, g, nil
}

// showGeneration shows the current state of a generation.
func (a *app) showGeneration(ctx context.Context, m *readmodel.Model, g readmodel.Generation, p *progressLine) error {
	all, err := m.Generations(ctx)
	if err != nil {
		return err
	}
	if i := slices.IndexFunc(all.Live, func(live readmodel.Generation) bool { return live.Number == g.Number }); i >= 0 {
		g = all.Live[i] // includes its form
	}
	l := newGenerationLine(all, g)
	l.progressLine = p
	fields := []output.Field{
		{Name: "model", Value: l.Model},
		{Name: "generation", Value: strconv.FormatUint(l.Generation, 10)},
		{Name: "form", Value: orDash(l.Form)},
		{Name: "group", Value: l.Group},
		{Name: "state", Value: l.State},
	}
	if p != nil {
		fields = append(fields, output.Field{Name: "left", Value: output.Counted(p.Events, "event", "events")}, output.Field{Name: "parked", Value: output.Count(p.ParkedEvents)},
			output.Field{Name: "skipped", Value: p.skipped()}, output.Field{Name: "rests", Value: orDash(p.rests())})
	}
	return a.line(l, fields...)
}
