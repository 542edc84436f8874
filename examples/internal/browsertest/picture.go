package browsertest

import (
	"context"
	"os"
	"path/filepath"
	"regexp"

	"github.com/chromedp/chromedp"
)

// Picture returns a picture of the window, as PNG.
func (u *User) Picture() []byte {
	u.t.Helper()
	var picture []byte
	u.do("take a picture", chromedp.CaptureScreenshot(&picture))
	return picture
}

var odd = regexp.MustCompile(`[^A-Za-z0-9]+`)

// leavePicture describes the page of a failed test. The picture is kept after the test, so it is
// not in t.TempDir.
func (u *User) leavePicture() {
	u.t.Helper()
	ctx, cancel := context.WithTimeout(u.ctx, patience)
	defer cancel()
	var url, page string
	var picture []byte
	if err := chromedp.Run(ctx, chromedp.Location(&url), chromedp.Evaluate(readable, &page), chromedp.FullScreenshot(&picture, 100)); err != nil {
		u.t.Logf("there is no picture of %s's page: %v", u.name, err)
		return
	}
	path := filepath.Join(os.TempDir(), odd.ReplaceAllString(u.t.Name()+"-"+u.name, "-")+".png")
	if err := os.WriteFile(path, picture, 0o600); err != nil {
		u.t.Logf("there is no picture of %s's page: %v", u.name, err)
		return
	}
	u.t.Logf("%s's page is %s, see %s, and reads:\n%s", u.name, url, path, page)
}
