package awslambda

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"
)

// remaining is the reply to a schedule.
type remaining struct {
	Left int        `json:"left"`
	Due  *time.Time `json:"due,omitempty"`
}

// reply returns the reply of an invocation, from the errors of messages and the error of the burst.
// If some messages of an SQS batch have failed, the reply lists their ids, so that SQS repeats only
// these. If all have failed, it is an error.
func (w work) reply(failed map[string]error, err error) ([]byte, error) {
	type item struct {
		ID string `json:"itemIdentifier"`
	}
	reply := struct {
		Failures []item `json:"batchItemFailures"`
	}{[]item{}}
	for id, reason := range failed {
		reply.Failures = append(reply.Failures, item{id})
		if err == nil {
			err = fmt.Errorf("%d messages have failed, one of them: %w", len(failed), reason)
		}
	}
	if err != nil && len(failed) >= w.queued { // works without ReportBatchItemFailures
		return nil, err
	}
	slices.SortFunc(reply.Failures, func(a, b item) int { return strings.Compare(a.ID, b.ID) })
	return json.Marshal(reply)
}
