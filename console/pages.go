package console

// pages holds the pages by the last part of their paths. They are also the documents under api.
var pages = map[string]page{}

func init() {
	for _, p := range []page{
		{name: "", template: "overview", load: (*reading).overview, shared: true, refreshes: true},
		{name: "topic", template: "topic", load: (*reading).topic, shared: true, refreshes: true},
		{name: "aggregates", template: "aggregates", load: (*reading).aggregates},
		{name: "aggregate", template: "aggregate", load: (*reading).timeline},
		{name: "schema", template: "schema", load: (*reading).schema},
		{name: "tail", template: "tail", load: (*reading).tail},
		{name: "groups", template: "groups", load: (*reading).groups, shared: true, refreshes: true},
		{name: "group", template: "group", load: (*reading).group, shared: true, refreshes: true},
		{name: "behind", template: "behind", load: (*reading).behind},
		{name: "skipped", template: "skipped", load: (*reading).skipped},
		{name: "models", template: "models", load: (*reading).models},
		{name: "model", template: "model", load: (*reading).model, shared: true, refreshes: true},
		{name: "processes", template: "processes", load: (*reading).processes},
		{name: "process", template: "process", load: (*reading).process},
	} {
		pages[p.name] = p
	}
}
