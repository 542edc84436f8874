package awslambda

import (
	"encoding/json"
	"maps"
	"slices"
	"time"
)

// metrics are the values of the metrics of an invocation, by name.
type metrics map[string]float64

// writeMetrics writes a line in the embedded metric format of CloudWatch.
func (f *Function) writeMetrics(m metrics) {
	type metric struct{ Name, Unit string }
	type set struct {
		Namespace  string
		Dimensions [][]string
		Metrics    []metric
	}
	line, s := map[string]any{}, set{Namespace: f.config.Namespace, Dimensions: [][]string{{}}}
	if f.name != "" {
		s.Dimensions[0], line["FunctionName"] = []string{"FunctionName"}, f.name
	}
	for _, name := range slices.Sorted(maps.Keys(m)) {
		unit := "Count"
		if name == "Duration" {
			unit = "Milliseconds"
		}
		line[name], s.Metrics = m[name], append(s.Metrics, metric{name, unit})
	}
	line["_aws"] = map[string]any{"Timestamp": time.Now().UnixMilli(), "CloudWatchMetrics": []set{s}}
	text, err := json.Marshal(line)
	if err == nil {
		f.writing.Lock()
		defer f.writing.Unlock()
		_, err = f.config.Metrics.Write(append(text, '\n'))
	}
	if err != nil {
		f.logger.Error("The metrics of the invocation were not written", err, nil)
	}
}
