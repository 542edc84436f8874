package command

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/millrace-dev/millrace/aggregate"
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

// parseMoment reads a time: "beginning", which is the zero time, "now", a duration before now, or
// RFC 3339.
func parseMoment(text string, now time.Time) (time.Time, error) {
	switch text {
	case "beginning":
		return time.Time{}, nil
	case "now":
		return now, nil
	}
	if ago, err := time.ParseDuration(text); err == nil && ago >= 0 {
		return now.Add(-ago), nil
	}
	at, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return time.Time{}, fmt.Errorf("%q is not a time: want beginning, now, a duration before now such as 10m or 36h, or a time such as 2006-01-02T15:04:05Z", text)
	}
	return at, nil
}

// selection holds --type and --id, which select a type or an aggregate.
type selection struct{ aggregateType, id string }

func (s *selection) register(cmd *cobra.Command) {
	cmd.Flags().StringVar(&s.aggregateType, "type", "", "only aggregates of this `type`")
	cmd.Flags().StringVar(&s.id, "id", "", "only the aggregate with this `id`, of --type")
}

func (s *selection) get() (archive.Selection, error) {
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
