package browsertest

import (
	"context"
	"errors"
	"os/exec"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
)

// patience limits the time of a failing test. It is not a claim about speed.
const patience = 2 * time.Minute

// startPatience is long, since a machine may be busy compiling the next tests.
const startPatience = time.Minute

var errMissing = errors.New("needs Chromium (Debian: apt-get install chromium)")

// Chromium is a browser. The zero value is ready to use. The first user starts the browser.
type Chromium struct {
	// Tabs requires a browser in which a tab hides the other tabs of its window. Otherwise
	// chromium-headless-shell is preferred if it is installed, because it needs half of the
	// processor time. It has no tabs.
	Tabs bool

	start  sync.Once
	ctx    context.Context // the context of chromedp, which keeps the browser running
	cancel context.CancelFunc
	err    error
}

// Close ends the browser.
func (c *Chromium) Close() {
	c.start.Do(func() {})
	if c.cancel == nil {
		return
	}
	// Without this request only a script that runs the browser would end.
	if c.err == nil {
		ctx, cancel := context.WithTimeout(c.ctx, startPatience)
		defer cancel()
		_ = chromedp.Cancel(ctx)
	}
	c.cancel()
}

// running returns the context of the running browser.
func (c *Chromium) running(t testing.TB) context.Context {
	t.Helper()
	path, err := c.find()
	if err != nil {
		t.Skip(err)
	}
	c.start.Do(func() { c.err = c.run(path) })
	if c.err != nil {
		t.Fatalf("start %s: %v", path, c.err)
	}
	return c.ctx
}

func (c *Chromium) run(path string) error {
	// Headless, without /dev/shm, and without a sandbox for root.
	options := append(chromedp.DefaultExecAllocatorOptions[:],
		chromedp.ExecPath(path),
		chromedp.WSURLReadTimeout(startPatience),
		chromedp.DisableGPU,
	)
	allocator, end := chromedp.NewExecAllocator(context.Background(), options...)
	browser, _ := chromedp.NewContext(allocator,
		// The library reports errors for messages that are newer than itself.
		chromedp.WithErrorf(func(string, ...any) {}),
	)
	c.ctx, c.cancel = browser, end
	return chromedp.Run(browser)
}

func (c *Chromium) find() (path string, err error) {
	names := []string{"chromium", "chromium-browser", "google-chrome"}
	if !c.Tabs {
		names = append([]string{"chromium-headless-shell"}, names...)
	}
	for _, name := range names {
		if path, err := exec.LookPath(name); err == nil {
			return path, nil
		}
	}
	return "", errMissing
}
