package command

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/cmd/millrace/internal/output"
	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/journal/archive"
)

// plainly replaces the error of a parse function by a text that says which value a flag needs. An
// unknown flag of a command that takes an id may be an id.
func plainly(cmd *cobra.Command, err error) error {
	if errors.As(err, new(*pflag.NotExistError)) && strings.Contains(cmd.Use, "ID") {
		return fmt.Errorf("%w: put -- before an id that begins with a dash, such as millrace stream account -- -x", err)
	}
	var invalid *pflag.InvalidValueError
	if !errors.As(err, &invalid) {
		return err
	}
	want, known := map[string]string{
		"int": "a whole number", "int64": "a whole number", "uint64": "a whole number, 0 or more",
		"duration": "a duration such as 500ms, 10s or 5m", "bool": "true or false",
	}[invalid.GetFlag().Value.Type()]
	if !known {
		return err
	}
	return fmt.Errorf("--%s is %q: want %s", invalid.GetFlag().Name, invalid.GetValue(), want)
}

// moment is a time of the command line: at, or a duration before now. The zero value is the
// beginning.
type moment struct {
	at       time.Time
	ago      time.Duration
	relative bool // to now
}

func (m moment) isBeginning() bool { return m == moment{} }

// on returns the time by the clock of the journal, which dates events. The clock of this machine
// may be wrong. Open has corrected it by DynamoDB's replies.
func (m moment) on(j *journal.Journal) time.Time {
	if m.relative {
		return j.Config().Now().Add(-m.ago)
	}
	return m.at
}

// start is on for a time from which events are read. It refuses the future.
func (m moment) start(flag string, j *journal.Journal) (time.Time, error) {
	if now := j.Config().Now(); m.at.After(now) {
		return time.Time{}, wrongUsage("--%s is in the future: it is %s now", flag, output.Time(now))
	}
	return m.on(j), nil
}

// parseMoment reads a time: "beginning", "now", a duration before now, or RFC 3339.
func parseMoment(text string) (moment, error) {
	switch text {
	case "beginning":
		return moment{}, nil
	case "now":
		return moment{relative: true}, nil
	}
	if ago, err := time.ParseDuration(text); err == nil && ago >= 0 {
		return moment{ago: ago, relative: true}, nil
	}
	at, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return moment{}, fmt.Errorf("%q is not a time: want beginning, now, a duration before now such as 10m or 36h, or a time such as 2006-01-02T15:04:05Z", text)
	}
	return moment{at: at}, nil
}

// notEmpty refuses empty filters, such as those of an unset variable of a shell.
func notEmpty(flags *pflag.FlagSet, names ...string) error {
	for _, name := range names {
		if flag := flags.Lookup(name); flag.Changed && flag.Value.String() == "" {
			return fmt.Errorf("--%s is empty, which would select all; leave it out to select all", name)
		}
	}
	return nil
}

// selection holds --type and --id, which select a type or an aggregate.
type selection struct {
	aggregateType, id string
	flags             *pflag.FlagSet
}

func (s *selection) register(cmd *cobra.Command) {
	s.flags = cmd.Flags()
	cmd.Flags().StringVar(&s.aggregateType, "type", "", "only aggregates of this `type`")
	cmd.Flags().StringVar(&s.id, "id", "", "only the aggregate with this `id`, of --type")
}

func (s *selection) get() (archive.Selection, error) {
	if err := notEmpty(s.flags, "type", "id"); err != nil {
		return archive.Selection{}, wrongUsage("%v", err)
	}
	switch {
	case s.id == "":
		return archive.Selection{AggregateType: s.aggregateType}, nil
	case s.aggregateType == "":
		return archive.Selection{}, wrongUsage("--id needs --type: an id is unique within its type")
	}
	id, err := aggregate.NewID(s.aggregateType, s.id)
	if err != nil {
		return archive.Selection{}, wrongUsage("%v", err)
	}
	return archive.Selection{Aggregate: id}, nil
}
