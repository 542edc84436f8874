// The search of the site. The index is a script, because a page that was opened from a file may not
// fetch other files. It is loaded when the reader first uses the search.
"use strict";

const most = 20; // results
const form = document.getElementById("search");
const input = form.elements.q;
const results = document.getElementById("results");
const root = document.documentElement.dataset.root;

let loaded;
function load() {
	loaded ??= new Promise((resolve, reject) => {
		const script = document.createElement("script");
		script.src = root + "search-index.js";
		script.onload = () => resolve(window.searchIndex.map(([address, title, heading, text]) => ({
			address, title, heading, text, lower: [title, heading, text].map((s) => s.toLowerCase()),
		})));
		script.onerror = () => reject(new Error("the search index cannot be loaded"));
		document.head.append(script);
	});
	return loaded;
}

// score returns how well a section fits, or 0 if it lacks a word.
function score(section, words) {
	const [title, heading, text] = section.lower;
	let sum = 0;
	for (const word of words) {
		const points = (heading.includes(word) ? 8 : 0) + (title.includes(word) ? 5 : 0) +
			(text.includes(word) ? 1 : 0);
		if (points === 0) return 0;
		sum += points;
	}
	if (words.length > 1 && text.includes(words.join(" "))) sum += 4;
	return sum + (heading === "" ? 1 : 0);
}

function find(index, query) {
	const words = query.toLowerCase().split(/\s+/).filter(Boolean);
	if (words.length === 0) return {words, found: []};
	const found = index.map((section) => ({section, score: score(section, words)}))
		.filter((hit) => hit.score > 0).sort((a, b) => b.score - a.score);
	return {words, found};
}

// excerpt returns the text around the first word, with the words marked.
function excerpt(section, words) {
	const first = Math.min(...words.map((word) => section.lower[2].indexOf(word)).filter((at) => at >= 0), section.text.length);
	const start = first === section.text.length ? 0 : Math.max(0, first - 50);
	const small = document.createElement("small");
	if (start > 0) small.append("…");
	const piece = section.text.slice(start, start + 180);
	const pattern = new RegExp("(" + words.map((w) => w.replace(/[.*+?^${}()|[\]\\]/g, "\\$&")).join("|") + ")", "i");
	piece.split(pattern).forEach((part, n) => {
		if (n % 2 === 0) return small.append(part);
		const mark = document.createElement("mark");
		mark.append(part);
		small.append(mark);
	});
	return small;
}

function show({words, found}) {
	results.replaceChildren();
	results.hidden = words.length === 0;
	for (const {section} of found.slice(0, most)) {
		const link = document.createElement("a");
		link.href = root + section.address;
		link.append(section.title + (section.heading ? " › " + section.heading : ""), excerpt(section, words));
		results.append(link);
	}
	const note = document.createElement("p");
	if (found.length === 0) note.append("Nothing found.");
	else if (found.length > most) note.append(`${found.length - most} more: add a word.`);
	else return;
	results.append(note);
}

async function search() {
	const query = input.value;
	try {
		const index = await load();
		if (query === input.value) show(find(index, query));
	} catch (err) {
		results.hidden = false;
		results.textContent = err.message;
	}
}

input.addEventListener("input", search);
form.addEventListener("submit", (event) => {
	event.preventDefault();
	results.querySelector("a")?.click();
});
results.addEventListener("click", () => { results.hidden = true; }); // a link may lead to the same page
document.addEventListener("click", (event) => { if (!form.contains(event.target)) results.hidden = true; });
document.addEventListener("keydown", (event) => {
	if (event.key === "Escape") {
		results.hidden = true;
	} else if (event.key === "/" && !event.target.closest("input, textarea")) {
		event.preventDefault();
		input.focus();
	} else if ((event.key === "ArrowDown" || event.key === "ArrowUp") && form.contains(event.target) && !results.hidden) {
		const stops = [input, ...results.querySelectorAll("a")];
		const next = stops[stops.indexOf(document.activeElement) + (event.key === "ArrowDown" ? 1 : -1)];
		if (next) {
			event.preventDefault();
			next.focus();
		}
	}
});

form.hidden = false;
const asked = new URLSearchParams(location.search).get("q"); // a search can be linked to
if (asked) {
	input.value = asked;
	search();
}
