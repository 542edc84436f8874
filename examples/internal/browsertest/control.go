package browsertest

import (
	"context"
	"errors"
	"fmt"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/dom"
	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// Press clicks the only button, link or similar control of that name. It waits until the control
// exists and nothing covers it.
func (u *User) Press(name string) {
	u.t.Helper()
	u.press(wholePage, name)
}

// PressIn works as Press does, in the only article or table row that contains a text.
func (u *User) PressIn(text, name string) {
	u.t.Helper()
	u.press(partWith(text), name)
}

func (u *User) press(part, name string) {
	u.t.Helper()
	u.eventually(fmt.Sprintf("to press %q", name), func(ctx context.Context) error {
		control, err := find1(ctx, part, name)
		if err != nil {
			return err
		}
		var at struct {
			X, Y float64
			Free bool
		}
		if err := control.call(ctx, `function() {
			this.scrollIntoView({block: "center", inline: "nearest", behavior: "instant"});
			const box = this.getBoundingClientRect();
			const [X, Y] = [box.x + box.width / 2, box.y + box.height / 2];
			const top = document.elementFromPoint(X, Y);
			return {X, Y, Free: this.contains(top) && !this.disabled};
		}`, &at); err != nil {
			return err
		}
		if !at.Free {
			return errors.New("it is covered or disabled")
		}
		return chromedp.MouseClickXY(at.X, at.Y).Do(ctx)
	})
}

// Type replaces the text in the field of that name.
func (u *User) Type(name, text string) {
	u.t.Helper()
	u.eventually(fmt.Sprintf("to type in %q", name), func(ctx context.Context) error {
		control, err := find1(ctx, wholePage, name)
		if err != nil {
			return err
		}
		if err := control.call(ctx, `function() { this.focus(); this.select?.(); return document.activeElement === this }`, new(bool)); err != nil {
			return err
		}
		if text == "" {
			return chromedp.KeyEvent(kb.Backspace).Do(ctx)
		}
		return input.InsertText(text).Do(ctx)
	})
}

// Choose selects an option of the list of that name by its value.
func (u *User) Choose(name, value string) {
	u.t.Helper()
	u.eventually(fmt.Sprintf("to choose in %q", name), func(ctx context.Context) error {
		control, err := find1(ctx, wholePage, name)
		if err != nil {
			return err
		}
		var chosen bool
		if err := control.call(ctx, fmt.Sprintf(`function() {
			this.value = %q;
			for (const event of ["input", "change"]) this.dispatchEvent(new Event(event, {bubbles: true}));
			return this.value === %[1]q;
		}`, value), &chosen); err != nil {
			return err
		}
		if !chosen {
			return fmt.Errorf("there is no option %q", value)
		}
		return nil
	})
}

// Keys types keys, including those of package kb, into the control that has the focus.
func (u *User) Keys(keys string) {
	u.t.Helper()
	u.do("type", chromedp.KeyEvent(keys))
}

// TabTo waits for a control of that name, and presses the tabulator key until the control has the
// focus. It fails if the control never gets the focus, or if the focus is not visible.
func (u *User) TabTo(name string) {
	u.t.Helper()
	u.eventually(fmt.Sprintf("for %q", name), func(ctx context.Context) error {
		controls, err := find(ctx, wholePage, name)
		if err == nil && len(controls) == 0 {
			err = errors.New("there is no such control")
		}
		return err
	})
	const tooMany = 60
	var passed []string
	for range tooMany {
		u.Keys(kb.Tab)
		focus, visible := u.focus()
		if focus != "" && !visible {
			u.t.Fatalf("%s cannot see that the focus is on %q", u.name, focus)
		}
		if focus == name {
			return
		}
		passed = append(passed, focus)
	}
	u.t.Fatalf("%s never comes to %q, only to %s", u.name, name, quoted(passed))
}

// Focus returns the name of the control that has the focus, or "" if none has.
func (u *User) Focus() string {
	u.t.Helper()
	name, _ := u.focus()
	return name
}

func (u *User) focus() (name string, visible bool) {
	u.t.Helper()
	u.do("find the focus", chromedp.ActionFunc(func(ctx context.Context) error {
		object, thrown, err := runtime.Evaluate("document.activeElement").Do(ctx)
		if err != nil || thrown != nil {
			return errors.Join(err, thrown)
		}
		element := control{object: object.ObjectID}
		if err := element.call(ctx, `function() {
			const style = getComputedStyle(this);
			return this !== document.body && style.outlineStyle !== "none" && parseFloat(style.outlineWidth) > 0;
		}`, &visible); err != nil {
			return err
		}
		var tree struct {
			Nodes []axNode `json:"nodes"`
		}
		err = cdp.Execute(ctx, "Accessibility.getPartialAXTree",
			map[string]any{"objectId": object.ObjectID, "fetchRelatives": false}, &tree)
		if err == nil && len(tree.Nodes) > 0 && tree.Nodes[0].control() {
			name = tree.Nodes[0].Name.Value
		}
		return err
	}))
	return name, visible
}

// axNode is a node of the accessibility tree. The type of the library fails on values that it does
// not know.
type axNode struct {
	Ignored bool `json:"ignored"`
	Role    struct {
		Value string `json:"value"`
	} `json:"role"`
	Name struct {
		Value string `json:"value"`
	} `json:"name"`
	BackendDOMNodeID cdp.BackendNodeID `json:"backendDOMNodeId"`
}

func (n axNode) control() bool {
	switch n.Role.Value {
	case "button", "link", "textbox", "searchbox", "spinbutton", "combobox", "checkbox", "radio", "Date", "DisclosureTriangle", "listbox":
		return !n.Ignored
	}
	return false
}

// control is an element of the page.
type control struct{ object runtime.RemoteObjectID }

// These JavaScript expressions select parts of a page.
const wholePage = "document"

func partWith(text string) string {
	return fmt.Sprintf(`((text) => {
		const showing = [...document.querySelectorAll("article, tr")].filter((e) => e.innerText.includes(text));
		const outer = showing.filter((e) => !showing.some((other) => other !== e && other.contains(e)));
		if (outer.length !== 1) throw new Error(outer.length + " articles and rows show " + text);
		return outer[0];
	})(%q)`, text)
}

// find returns the controls with that name in a part of the page.
func find(ctx context.Context, part, name string) (controls []axNode, err error) {
	root, thrown, err := runtime.Evaluate(part).Do(ctx)
	if err != nil {
		return nil, err
	}
	if thrown != nil {
		return nil, thrown
	}
	var found struct {
		Nodes []axNode `json:"nodes"`
	}
	if err := cdp.Execute(ctx, "Accessibility.queryAXTree",
		map[string]any{"objectId": root.ObjectID, "accessibleName": name}, &found); err != nil {
		return nil, err
	}
	for _, node := range found.Nodes {
		if node.control() {
			controls = append(controls, node)
		}
	}
	return controls, nil
}

// find1 returns the only control with that name in a part of the page.
func find1(ctx context.Context, part, name string) (control, error) {
	controls, err := find(ctx, part, name)
	if err != nil {
		return control{}, err
	}
	if len(controls) != 1 {
		return control{}, fmt.Errorf("%d controls are named %q", len(controls), name)
	}
	object, err := dom.ResolveNode().WithBackendNodeID(controls[0].BackendDOMNodeID).Do(ctx)
	if err != nil {
		return control{}, err
	}
	return control{object: object.ObjectID}, nil
}

func (c control) call(ctx context.Context, function string, result any) error {
	return chromedp.CallFunctionOn(function, result, func(p *runtime.CallFunctionOnParams) *runtime.CallFunctionOnParams {
		return p.WithObjectID(c.object)
	}).Do(ctx)
}
