package awslambda

import (
	"encoding/json"
	"maps"
	"slices"
	"time"
)

// metrics are the values of the metrics of an invocation, by name.
type metrics map[string]int

// writeMetrics writes a line in the embedded metric format of CloudWatch, if there are metrics.
func (f *Function) writeMetrics(m metrics) {
	if len(m) == 0 {
		return
	}
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
		line[name], s.Metrics = m[name], append(s.Metrics, metric{name, "Count"})
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
