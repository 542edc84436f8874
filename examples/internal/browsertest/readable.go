package browsertest

// Readable checks that nothing is wider than the window, and that texts have the contrast to their
// background that WCAG 2.2 requires at level AA: 4.5, or 3 for large texts.
func (u *User) Readable() {
	u.t.Helper()
	if wide := Evaluate[[]string](u, tooWide); len(wide) > 0 {
		u.t.Errorf("%s has to scroll sideways to see all of %s", u.name, quoted(wide))
	}
	if faint := Evaluate[[]string](u, tooFaint); len(faint) > 0 {
		u.t.Errorf("%s can hardly read %s", u.name, quoted(faint))
	}
}

const tooWide = `((width) => document.documentElement.scrollWidth <= width ? [] :
	[...document.querySelectorAll("body *")].filter((e) => e.getBoundingClientRect().left + e.scrollWidth > width).
		map((e) => e.tagName + "#" + e.id + "." + e.className))(document.documentElement.clientWidth)`

// tooFaint ignores pictures: for a text on a picture it uses the background colour.
const tooFaint = `(() => {
	const parse = (text) => { // rgb(0 to 255), or color(srgb 0 to 1)
		const [r, g, b, a = 1] = text.match(/[\d.]+(e-?\d+)?/g).map(Number);
		return (text.startsWith("color") ? [r * 255, g * 255, b * 255, a] : [r, g, b, a]);
	};
	const over = ([r, g, b, a], under) => [r, g, b].map((c, i) => c * a + under[i] * (1 - a));
	const light = (color) => {
		const [r, g, b] = color.map((c) => c / 255).map((c) => (c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4));
		return 0.2126 * r + 0.7152 * g + 0.0722 * b;
	};
	const behind = (element) => {
		if (!element) return matchMedia("(prefers-color-scheme: dark)").matches ? [18, 18, 18] : [255, 255, 255];
		const color = parse(getComputedStyle(element).backgroundColor);
		return color[3] === 1 ? color.slice(0, 3) : over(color, behind(element.parentElement));
	};
	const faint = [];
	const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
	for (let text; (text = texts.nextNode());) {
		const element = text.parentElement;
		if (!text.data.trim() || !element.checkVisibility() || element.closest("option, script, noscript")) continue;
		const style = getComputedStyle(element);
		const back = behind(element);
		const [high, low] = [light(over(parse(style.color), back)), light(back)].sort((a, b) => b - a);
		const size = parseFloat(style.fontSize);
		const large = size >= 24 || (size >= 18.66 && style.fontWeight >= 700);
		const contrast = (high + 0.05) / (low + 0.05);
		if (contrast < (large ? 3 : 4.5)) faint.push(text.data.trim() + " (" + contrast.toFixed(1) + ")");
	}
	return faint;
})()`
