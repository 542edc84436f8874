// Package httpapi has the parts of an HTTP interface that are the same in each service: it reads
// requests, and replies with the outcome of a command or a query.
//
//	func (a *app) hold(w http.ResponseWriter, r *http.Request) {
//		var body struct{ Customer, Seat string }
//		if !httpapi.Read(w, r, &body) {
//			return
//		}
//		show, err := a.shows.Execute(r.Context(), r.PathValue("show"),
//			Hold(body.Customer, body.Seat), httpapi.Once(r)...)
//		httpapi.Write(w, r, err, httpapi.Reply{Status: http.StatusAccepted, Token: show.Token()})
//	}
//
// The reply to a command has a consistency token in a header. A client that sends it with its next
// query sees what it has written: see millrace.App.Consistent.
//
// The package is optional, and has no routes and no format of errors. An interface with another
// format uses [Status].
package httpapi
