package browsertest

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/browser"
	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/target"
	"github.com/chromedp/chromedp"
)

// User is a person with a browser window and separate cookies. The test fails if the user cannot do
// an action.
type User struct {
	t       testing.TB
	name    string
	browser *Chromium
	jar     cdp.BrowserContextID // the context of the cookies
	looks   settings
	ctx     context.Context // the context of chromedp for the window

	mu       sync.Mutex
	expected []string
	received []string
	troubles []string
}

// Option configures a [User].
type Option func(*settings)

type settings struct {
	width, height int64
	scale         float64
	phone         bool
	media         []*emulation.MediaFeature
	zone          string
	noScripts     bool
}

// Phone makes the window as small as a phone, 360 by 740 pixels.
func Phone(s *settings) { s.width, s.height, s.phone = 360, 740, true }

// Window sets the size of the window in CSS pixels, and the number of device pixels for each of
// them. Default: 1100 by 800, and 1.
func Window(width, height int64, scale float64) Option {
	return func(s *settings) { s.width, s.height, s.scale = width, height, scale }
}

// Dark makes the user prefer dark colours.
func Dark(s *settings) {
	s.media = append(s.media, &emulation.MediaFeature{Name: "prefers-color-scheme", Value: "dark"})
}

// Still makes the user prefer pages without motion.
func Still(s *settings) {
	s.media = append(s.media, &emulation.MediaFeature{Name: "prefers-reduced-motion", Value: "reduce"})
}

// TimeZone sets the time zone of the user, such as "Asia/Tokyo". Default: the time zone of the
// machine.
func TimeZone(name string) Option {
	return func(s *settings) { s.zone = name }
}

// NoScripts switches JavaScript off for pages. Tests can still evaluate expressions.
func NoScripts(s *settings) { s.noScripts = true }

// User returns a new user. Its troubles fail the test.
func (c *Chromium) User(t testing.TB, name string, options ...Option) *User {
	t.Helper()
	s := settings{width: 1100, height: 800, scale: 1}
	for _, option := range options {
		option(&s)
	}
	ctx := inBrowser(c.running(t))
	jar, err := target.CreateBrowserContext().Do(ctx)
	if err != nil {
		t.Fatalf("%s opens a browser: %v", name, err)
	}
	t.Cleanup(func() {
		if err := target.DisposeBrowserContext(jar).Do(inBrowser(c.ctx)); err != nil {
			t.Errorf("%s closes the browser: %v", name, err)
		}
	})
	u := &User{t: t, name: name, browser: c, jar: jar, looks: s}
	u.open()
	return u
}

// Window returns the same user in another window of the same browser, with the same cookies.
func (u *User) Window() *User {
	u.t.Helper()
	other := &User{t: u.t, name: u.name, browser: u.browser, jar: u.jar, looks: u.looks}
	other.open()
	return other
}

// open opens the window.
func (u *User) open() {
	u.t.Helper()
	window, err := newWindow(u.browser.ctx, u.jar)
	if err != nil {
		u.t.Fatalf("%s opens a window: %v", u.name, err)
	}
	ctx, cancel := chromedp.NewContext(u.browser.ctx, chromedp.WithTargetID(window))
	u.ctx = ctx
	chromedp.ListenTarget(ctx, u.watch)
	u.t.Cleanup(func() {
		u.report()
		cancel()
	})
	s := u.looks
	// The first run must not have a deadline, because the window would be closed with it.
	if err := chromedp.Run(ctx,
		chromedp.EmulateViewport(s.width, s.height, func(p *emulation.SetDeviceMetricsOverrideParams, touch *emulation.SetTouchEmulationEnabledParams) {
			p.DeviceScaleFactor, p.Mobile, touch.Enabled = s.scale, s.phone, s.phone
		}),
		emulation.SetEmulatedMedia().WithFeatures(s.media),
		emulation.SetLocaleOverride().WithLocale("en-GB"),
		emulation.SetTimezoneOverride(s.zone), // empty means the time zone of the machine
		emulation.SetScriptExecutionDisabled(s.noScripts),
		// Each window behaves as if it were in front.
		emulation.SetFocusEmulationEnabled(true),
		browser.GrantPermissions([]browser.PermissionType{browser.PermissionTypeClipboardReadWrite, browser.PermissionTypeClipboardSanitizedWrite}).
			WithBrowserContextID(u.jar),
	); err != nil {
		u.t.Fatalf("%s opens a window: %v", u.name, err)
	}
}

// newWindow opens a window. The library would open a tab, but Chromium has no window for it.
func newWindow(ctx context.Context, jar cdp.BrowserContextID) (target.ID, error) {
	var window target.CreateTargetReturns
	err := cdp.Execute(inBrowser(ctx), target.CommandCreateTarget,
		map[string]any{"url": "about:blank", "browserContextId": jar, "newWindow": true}, &window)
	return window.TargetID, err
}

func inBrowser(ctx context.Context) context.Context {
	return cdp.WithExecutor(ctx, chromedp.FromContext(ctx).Browser)
}

// Open opens a page, and returns when the page and its scripts are loaded.
func (u *User) Open(url string) {
	u.t.Helper()
	u.do("open "+url, chromedp.Navigate(url))
}

// Reload loads the page again.
func (u *User) Reload() {
	u.t.Helper()
	u.do("reload", chromedp.Reload())
}

// URL returns the address of the page.
func (u *User) URL() string {
	u.t.Helper()
	return Evaluate[string](u, "location.href")
}

// Evaluate returns the value of a JavaScript expression. If that is a promise, it waits for the
// value.
func Evaluate[T any](u *User, expression string) T {
	u.t.Helper()
	var value T
	u.do("evaluate "+expression, chromedp.Evaluate(expression, &value, chromedp.EvalAsValue, awaitPromise))
	return value
}

// Together runs the actions of several users at the same time.
func Together(t testing.TB, acts ...func()) {
	t.Helper()
	var acting sync.WaitGroup
	for _, act := range acts {
		acting.Add(1)
		// Not WaitGroup.Go, since a failing test ends the goroutine.
		go func() {
			defer acting.Done()
			act()
		}()
	}
	acting.Wait()
	if t.Failed() {
		t.FailNow()
	}
}

func (u *User) do(what string, actions ...chromedp.Action) {
	u.t.Helper()
	ctx, cancel := context.WithTimeout(u.ctx, patience)
	defer cancel()
	if err := chromedp.Run(ctx, actions...); err != nil {
		u.t.Fatalf("%s cannot %s: %v", u.name, what, err)
	}
}

// eventually waits until a condition of the page is true. An error means that it is not true yet,
// for example while the page loads.
func (u *User) eventually(what string, holds func(ctx context.Context) error) {
	u.t.Helper()
	ctx, cancel := context.WithTimeout(u.ctx, patience)
	defer cancel()
	again := time.NewTicker(20 * time.Millisecond)
	defer again.Stop()
	var last error
	for {
		err := chromedp.Run(ctx, chromedp.ActionFunc(holds))
		if err == nil {
			return
		}
		if ctx.Err() == nil {
			last = err
		}
		select {
		case <-ctx.Done():
			u.t.Fatalf("%s waits in vain: %s: %v", u.name, what, last)
		case <-again.C:
		}
	}
}

func quoted(texts []string) string {
	var all []string
	for _, text := range texts {
		all = append(all, fmt.Sprintf("%q", text))
	}
	return strings.Join(all, ", ")
}
