package docs

import (
	"encoding/json"
	"iter"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/rulefmt"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/forward"
	"github.com/millrace-dev/millrace/metrics"
	"github.com/millrace-dev/millrace/process"
	"github.com/millrace-dev/millrace/projection"
	"github.com/millrace-dev/millrace/receive"
	"github.com/millrace-dev/millrace/repository"
	"github.com/millrace-dev/millrace/subscriber"
)

func TestAlertsUseMetricsThatExist(t *testing.T) {
	t.Parallel()
	series := collected(t)
	rules, errs := rulefmt.Parse([]byte(read(t, "operations/alerts.yaml")), false)
	require.Empty(t, errs)
	page := read(t, "operations/alerts.md")
	var names []string
	for _, group := range rules.Groups {
		for _, rule := range group.Rules {
			names = append(names, rule.Alert)
			assert.Empty(t, unknownSeries(rule.Expr, series), rule.Alert)
			assert.Contains(t, page, "`"+rule.Alert+"`", "the page explains each alert")
			assert.NotEmpty(t, rule.Labels["severity"], rule.Alert)
			assert.NotEmpty(t, rule.Annotations["summary"], rule.Alert)
			runbook := strings.TrimPrefix(rule.Annotations["runbook"], "docs/")
			assert.NoError(t, follow("README.md", runbook), rule.Alert)
		}
	}
	assert.Greater(t, len(names), 10)
	for _, name := range regexp.MustCompile("`(Millrace\\w+)`").FindAllStringSubmatch(page, -1) {
		assert.Contains(t, names, name[1], "documented, and no rule")
	}
}

func TestPagesForOperatorsNameMetricsThatExist(t *testing.T) {
	t.Parallel()
	series := collected(t)
	names, err := filepath.Glob("operations/*.md")
	require.NoError(t, err)
	queries := 0
	for _, name := range names {
		for _, match := range regexp.MustCompile("`([^`\n]*millrace_[a-z][^`\n]*)`").FindAllStringSubmatch(read(t, name), -1) {
			queries++
			assert.Empty(t, unknownSeries(match[1], series), "%s: %s", name, match[1])
		}
	}
	assert.Greater(t, queries, 20)
}

func TestAnAlertOnAMissingMetricIsNoticed(t *testing.T) {
	t.Parallel()
	series := collected(t)

	assert.Empty(t, unknownSeries(`sum by (topic) (millrace_subscriber_lag_events{shard="1"}) > 0`, series))
	assert.Equal(t, []string{"no metric millrace_gone"}, unknownSeries(`rate(millrace_gone[5m])`, series))
	assert.Equal(t, []string{"millrace_subscriber_shards_held has no label shard"},
		unknownSeries(`sum by (shard) (millrace_subscriber_shards_held)`, series))
	assert.Equal(t, []string{"millrace_process_polls_total has no label topic"},
		unknownSeries(`millrace_process_polls_total{topic="account"}`, series))
	assert.Contains(t, unknownSeries(`sum(`, series)[0], "parse error")
}

func TestTheDashboardUsesMetricsThatExist(t *testing.T) {
	t.Parallel()
	series, board := collected(t), dashboard(t)
	expressions := 0
	for panel := range board.all() {
		for _, target := range panel.Targets {
			if target.Expr == "" {
				continue
			}
			expressions++
			assert.Empty(t, unknownSeries(board.fill(target.Expr), series), "panel %q", panel.Title)
			for _, label := range regexp.MustCompile(`{{(\w+)}}`).FindAllStringSubmatch(target.LegendFormat, -1) {
				assert.Contains(t, target.Expr, label[1], "panel %q has a legend with a label that its query drops", panel.Title)
			}
		}
	}
	assert.Greater(t, expressions, 30)
	for _, variable := range board.Templating.List {
		if query := regexp.MustCompile(`^label_values\((.+), (\w+)\)$`).FindStringSubmatch(variable.Definition); query != nil {
			assert.Empty(t, unknownSeries("sum by ("+query[2]+") ("+board.fill(query[1])+")", series), "variable %q", variable.Name)
		}
	}
}

func TestTheDashboardIsOneThatGrafanaLoads(t *testing.T) {
	t.Parallel()
	board := dashboard(t)
	assert.Nil(t, board.ID, "Grafana gives the id")
	assert.NotEmpty(t, board.UID)
	assert.GreaterOrEqual(t, board.SchemaVersion, 36)
	variables := map[string]string{}
	for _, variable := range board.Templating.List {
		variables[variable.Name] = variable.Query.text
	}
	ids, taken := map[int]bool{}, map[[2]int]string{}
	for panel := range board.all() {
		assert.Positive(t, panel.ID, panel.Title)
		assert.False(t, ids[panel.ID], "panel id %d is used twice", panel.ID)
		ids[panel.ID] = true
		assert.NotEmpty(t, panel.Title)
		at := panel.GridPos
		assert.True(t, at.X >= 0 && at.W > 0 && at.H > 0 && at.X+at.W <= 24, "panel %q is beside the grid", panel.Title)
		for x := at.X; x < at.X+at.W; x++ {
			for y := at.Y; y < at.Y+at.H; y++ {
				assert.Empty(t, taken[[2]int{x, y}], "panel %q covers another one", panel.Title)
				taken[[2]int{x, y}] = panel.Title
			}
		}
		if panel.Type == "row" {
			continue
		}
		assert.NotEmpty(t, panel.Description, panel.Title)
		require.NotEmpty(t, panel.Targets, panel.Title)
		refs := map[string]bool{}
		for _, target := range panel.Targets {
			assert.False(t, refs[target.RefID], "panel %q has two queries %s", panel.Title, target.RefID)
			refs[target.RefID] = true
			name := strings.Trim(target.Datasource.UID, "${}")
			assert.Equal(t, "${"+name+"}", target.Datasource.UID, "panel %q has a fixed data source", panel.Title)
			assert.Equal(t, target.Datasource.Type, variables[name], "panel %q", panel.Title)
			assert.Equal(t, target.Datasource, panel.Datasource, panel.Title)
			if target.Datasource.Type == "cloudwatch" {
				assert.Equal(t, "AWS/DynamoDB", target.Namespace, panel.Title)
				assert.Contains(t, []string{
					"ConsumedReadCapacityUnits", "ConsumedWriteCapacityUnits", "ReadThrottleEvents", "WriteThrottleEvents",
					"SuccessfulRequestLatency", "SystemErrors",
				}, target.MetricName, panel.Title)
			}
		}
	}
}

// board is a dashboard of Grafana, with the fields that the tests use.
type board struct {
	ID            any
	UID           string
	SchemaVersion int
	Panels        []panel
	Templating    struct {
		List []struct {
			Name, Type, Definition string
			Query                  query
		}
	}
}

type panel struct {
	ID                       int
	Type, Title, Description string
	Datasource               source
	GridPos                  struct{ X, Y, W, H int }
	Panels                   []panel
	Targets                  []struct {
		RefID, Expr, LegendFormat, Namespace, MetricName string
		Datasource                                       source
	}
}

type source struct{ Type, UID string }

// query is a string, or an object for a query of Prometheus.
type query struct{ text string }

func (q *query) UnmarshalJSON(data []byte) error {
	if data[0] == '{' {
		return nil
	}
	return json.Unmarshal(data, &q.text)
}

func dashboard(t *testing.T) (b board) {
	t.Helper()
	require.NoError(t, json.Unmarshal([]byte(read(t, "operations/grafana.json")), &b))
	require.NotEmpty(t, b.Panels)
	return b
}

// all yields the panels, those inside of collapsed rows too.
func (b board) all() iter.Seq[panel] {
	return func(yield func(panel) bool) {
		for _, p := range b.Panels {
			if !yield(p) {
				return
			}
			for _, inner := range p.Panels {
				if !yield(inner) {
					return
				}
			}
		}
	}
}

// fill replaces the variables of an expression as Grafana does.
func (b board) fill(expr string) string {
	expr = strings.ReplaceAll(expr, "$__rate_interval", "5m")
	for _, variable := range b.Templating.List {
		value := ".*"
		if variable.Type == "textbox" {
			value = variable.Query.text
		}
		expr = strings.ReplaceAll(expr, "$"+variable.Name, value)
	}
	return expr
}

// unknownSeries returns the series in an expression that no collector has.
func unknownSeries(expr string, series map[string][]string) (faults []string) {
	parsed, err := parser.ParseExpr(expr)
	if err != nil {
		return []string{"parse error: " + err.Error()}
	}
	parser.Inspect(parsed, func(node parser.Node, path []parser.Node) error {
		selector, ok := node.(*parser.VectorSelector)
		if !ok {
			return nil
		}
		known, exists := series[selector.Name]
		if !exists {
			faults = append(faults, "no metric "+selector.Name)
			return nil
		}
		var used []string
		for _, matcher := range selector.LabelMatchers {
			if matcher.Name != labels.MetricName {
				used = append(used, matcher.Name)
			}
		}
		for _, outer := range path {
			if sum, ok := outer.(*parser.AggregateExpr); ok {
				used = append(used, sum.Grouping...)
			}
		}
		slices.Sort(used)
		for _, label := range slices.Compact(used) {
			if !slices.Contains(known, label) {
				faults = append(faults, selector.Name+" has no label "+label)
			}
		}
		return nil
	})
	return faults
}

// collected returns the labels of each series that the collectors have, by name.
func collected(t *testing.T) map[string][]string {
	t.Helper()
	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(
		metrics.NewSubscriberCollector(observed{}, metrics.SubscriberConfig{ConsumerGroup: "totals"}),
		metrics.NewProjectionCollector(projected{}, metrics.ProjectionConfig{Name: "totals"}),
		metrics.NewProcessCollector(stepped{}, metrics.ProcessConfig{Type: "order-saga"}),
		metrics.NewRepositoryCollector(committed{}, metrics.RepositoryConfig{AggregateType: "order"}),
		metrics.NewForwarderCollector(new(forward.Forwarder), metrics.BrokerConfig{ConsumerGroup: "kafka"}),
		metrics.NewReceiverCollector(new(receive.Receiver), metrics.BrokerConfig{ConsumerGroup: "payments"}),
	)
	families, err := registry.Gather()
	require.NoError(t, err)
	series := map[string][]string{}
	for _, family := range families {
		names := []string{family.GetName()}
		if family.GetType().String() == "SUMMARY" {
			names = []string{family.GetName() + "_sum", family.GetName() + "_count"}
		}
		for _, name := range names {
			for _, label := range family.GetMetric()[0].GetLabel() {
				series[name] = append(series[name], label.GetName())
			}
		}
	}
	require.Greater(t, len(series), 40, strconv.Itoa(len(series)))
	return series
}

type observed struct{}

func (observed) Stats() subscriber.Stats { return subscriber.Stats{} }
func (observed) Topics() []string        { return []string{"account"} }
func (observed) Shards() []subscriber.ShardStatus {
	return []subscriber.ShardStatus{{Topic: "account"}}
}

type (
	projected struct{}
	stepped   struct{}
	committed struct{}
)

func (projected) Stats() projection.Stats { return projection.Stats{} }
func (stepped) Stats() process.Stats      { return process.Stats{} }
func (committed) Stats() repository.Stats { return repository.Stats{} }
