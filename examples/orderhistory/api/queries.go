package api

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"time"

	"github.com/millrace-dev/millrace/examples/orderhistory/history"
	"github.com/millrace-dev/millrace/examples/orderhistory/order"
)

func (s *server) findOrder(r *http.Request) (reply, error) {
	found, err := s.History.FindOrder(r.Context(), r.PathValue("id"))
	return reply{status: http.StatusOK, body: found}, err
}

func (s *server) findOrders(r *http.Request) (reply, error) {
	filter, err := filterOf(r)
	if err != nil {
		return reply{}, err
	}
	page, err := s.History.FindOrderHistory(r.Context(), r.PathValue("id"), filter)
	return reply{status: http.StatusOK, body: page}, err
}

var parameters = []string{"status", "keyword", "since", "until", "pageSize", "pageToken"}

// filterOf refuses what it does not know: a misspelt filter would show too much.
func filterOf(r *http.Request) (filter history.Filter, err error) {
	query, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return filter, &requestError{"the query cannot be read: " + err.Error()}
	}
	for name, values := range query {
		if !slices.Contains(parameters, name) {
			return filter, &history.FilterError{Field: name, Reason: fmt.Sprintf("is not one of %q", parameters)}
		}
		if len(values) > 1 {
			return filter, &history.FilterError{Field: name, Reason: "is given more than once"}
		}
	}
	filter = history.Filter{
		Status: order.Status(query.Get("status")), Keyword: query.Get("keyword"), PageToken: query.Get("pageToken"),
	}
	if filter.Since, err = timeOf("since", query.Get("since")); err != nil {
		return filter, err
	}
	if filter.Until, err = timeOf("until", query.Get("until")); err != nil {
		return filter, err
	}
	if size := query.Get("pageSize"); size != "" {
		if filter.PageSize, err = strconv.Atoi(size); err != nil || filter.PageSize == 0 {
			return filter, &history.FilterError{Field: "pageSize", Reason: fmt.Sprintf("is %q, not a number from 1 to %d", size, history.MaxPageSize)}
		}
	}
	return filter, nil
}

// timeOf reads a day, which begins at midnight UTC, or a time.
func timeOf(field, value string) (time.Time, error) {
	if value == "" {
		return time.Time{}, nil
	}
	for _, layout := range []string{time.DateOnly, time.RFC3339} {
		if t, err := time.Parse(layout, value); err == nil {
			return t, nil
		}
	}
	return time.Time{}, &history.FilterError{Field: field, Reason: fmt.Sprintf("is %q, neither a day (2006-01-02) nor a time (2006-01-02T15:04:05Z)", value)}
}
