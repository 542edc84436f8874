package browsertest

import (
	"fmt"
	"strings"

	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
)

// Expects lists troubles that do not fail the test: those whose description contains one of the
// texts, such as "status 410" or "ERR_CONNECTION_REFUSED".
func (u *User) Expects(texts ...string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.expected = append(u.expected, texts...)
}

// Received returns the data of all server-sent events so far.
func (u *User) Received() []string {
	u.mu.Lock()
	defer u.mu.Unlock()
	return append([]string(nil), u.received...)
}

func (u *User) watch(event any) {
	switch e := event.(type) {
	case *runtime.EventExceptionThrown:
		u.trouble("uncaught exception: %s", e.ExceptionDetails.Error())
	case *runtime.EventConsoleAPICalled:
		if e.Type == runtime.APITypeError || e.Type == runtime.APITypeAssert {
			var said []string
			for _, argument := range e.Args {
				said = append(said, string(argument.Value)+argument.Description)
			}
			u.trouble("console.%s: %s", e.Type, strings.Join(said, " "))
		}
	case *log.EventEntryAdded: // includes violations of the content security policy
		if e.Entry.Level == log.LevelError && e.Entry.Source != log.SourceNetwork {
			u.trouble("%s: %s %s", e.Entry.Source, e.Entry.Text, e.Entry.URL)
		}
	case *network.EventResponseReceived:
		if e.Response.Status >= 400 {
			u.trouble("status %d of %s", e.Response.Status, e.Response.URL)
		}
	case *network.EventLoadingFailed:
		if !e.Canceled && e.ErrorText != "net::ERR_ABORTED" { // as when the user leaves the page
			u.trouble("%s %s of a %s", e.ErrorText, e.BlockedReason, e.Type)
		}
	case *network.EventEventSourceMessageReceived:
		u.mu.Lock()
		defer u.mu.Unlock()
		u.received = append(u.received, e.Data)
	}
}

func (u *User) trouble(format string, args ...any) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.troubles = append(u.troubles, fmt.Sprintf(format, args...))
}

// unexpected returns the troubles so far that the test does not expect.
func (u *User) unexpected() []string {
	u.mu.Lock()
	defer u.mu.Unlock()
	var unexpected []string
next:
	for _, trouble := range u.troubles {
		for _, text := range u.expected {
			if strings.Contains(trouble, text) {
				continue next
			}
		}
		unexpected = append(unexpected, trouble)
	}
	return unexpected
}

// report fails the test for unexpected troubles, and shows the page of a failed test.
func (u *User) report() {
	u.t.Helper()
	for _, trouble := range u.unexpected() {
		u.t.Errorf("%s's page has trouble: %s", u.name, trouble)
	}
	if u.t.Failed() {
		u.leavePicture()
	}
}
