package browsertest

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
)

// Sees waits until all the texts can be read on the page.
func (u *User) Sees(texts ...string) {
	u.t.Helper()
	u.eventually("to see "+quoted(texts), func(ctx context.Context) error {
		page, err := text(ctx)
		if err != nil {
			return err
		}
		for _, wanted := range texts {
			if !strings.Contains(page, wanted) {
				return fmt.Errorf("there is no %q in\n%s", wanted, page)
			}
		}
		return nil
	})
}

// SeesNo waits until none of the texts can be read on the page. To check that a text never appears,
// wait first for a text that appears later.
func (u *User) SeesNo(texts ...string) {
	u.t.Helper()
	u.eventually("for the end of "+quoted(texts), func(ctx context.Context) error {
		page, err := text(ctx)
		if err != nil {
			return err
		}
		for _, unwanted := range texts {
			if strings.Contains(page, unwanted) {
				return fmt.Errorf("there is %q in\n%s", unwanted, page)
			}
		}
		return nil
	})
}

// Waits waits until a JavaScript expression is true.
func (u *User) Waits(expression string) {
	u.t.Helper()
	u.eventually(expression, func(ctx context.Context) error {
		var holds bool
		if err := chromedp.Evaluate(expression, &holds).Do(ctx); err != nil {
			return err
		}
		if !holds {
			return errors.New("it is false")
		}
		return nil
	})
}

// Text returns the text that can be read on the page.
func (u *User) Text() string {
	u.t.Helper()
	return Evaluate[string](u, readable)
}

// readable returns the displayed words, and those in fields.
const readable = `document.body.innerText + [...document.querySelectorAll("input, textarea, select")].
	filter((field) => field.checkVisibility()).map((field) => "\n" + field.value).join("")`

func text(ctx context.Context) (string, error) {
	var page string
	err := chromedp.Evaluate(readable, &page).Do(ctx)
	// Several spaces look like one.
	return strings.Join(strings.FieldsFunc(page, func(r rune) bool { return r == ' ' || r == '\u00a0' || r == '\t' }), " "), err
}

func awaitPromise(p *runtime.EvaluateParams) *runtime.EvaluateParams { return p.WithAwaitPromise(true) }
