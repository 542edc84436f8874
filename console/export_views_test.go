package console

// Views holds the data of the documents under api and of their parts, by their names in
// docs/reference/console-json.md.
var Views = map[string]any{
	"`api/`":           overviewView{},
	"`api/topic`":      topicView{},
	"`api/aggregates`": aggregatesView{},
	"`api/aggregate`":  timelineView{},
	"`api/schema`":     schemaView{},
	"`api/tail`":       tailView{},
	"`api/groups`":     groupsView{},
	"`api/group`":      groupView{},
	"`api/behind`":     behindView{},
	"`api/skipped`":    skippedView{},
	"`api/models`":     modelsView{},
	"`api/model`":      modelView{},
	"`api/processes`":  processesView{},
	"`api/process`":    processView{},

	"reference":       aggregateRef{},
	"event reference": eventRef{},
	"event":           eventView{},
	"payload":         payloadView{},
	"change":          change{},
	"snapshot":        snapshotView{},
	"aggregate":       aggregateRow{},
	"concern":         concern{},
	"topic":           topicRow{},
	"group":           groupRow{},
	"lag":             lagView{},
	"failure":         failureView{},
	"member":          memberView{},
	"shard":           shardView{},
	"blocked":         behindRow{},
	"skipped":         skippedRow{},
	"model":           modelRow{},
	"generation":      generationView{},
	"progress":        progressView{},
	"pending":         pendingView{},
	"command":         commandView{},
	"open":            openView{},
	"status":          tailStatusView{},
}

// Kinds returns the kinds of concerns.
func Kinds() (kinds []string) {
	for kind := range severity {
		kinds = append(kinds, kind)
	}
	return kinds
}

// Pages returns the names of the documents under api.
func Pages() (names []string) {
	for name := range pages {
		names = append(names, name)
	}
	return names
}
