"use strict";

// Times are shown in the visitor's zone; the title has the exact value in UTC.
const clock = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "medium" });
function localTimes(root) {
  for (const t of root.querySelectorAll("time[datetime]")) {
    const at = new Date(t.dateTime);
    if (!isNaN(at)) t.textContent = clock.format(at);
  }
}

function enliven(root) {
  localTimes(root);
  for (const button of root.querySelectorAll("button.copy, button.related")) button.hidden = false;
}

// Times are entered in the visitor's zone, and sent in UTC.
function localInput(input) {
  if (input.value) {
    const at = new Date(input.value + "Z");
    input.value = new Date(at - at.getTimezoneOffset() * 60000).toISOString().slice(0, 23);
  }
  for (const zone of input.form.querySelectorAll(".zone")) zone.textContent = "(your time)";
  input.setAttribute("aria-label", input.dataset.local);
  input.form.addEventListener("formdata", (e) => {
    if (input.value) e.formData.set(input.name, new Date(input.value).toISOString());
  });
}
for (const input of document.querySelectorAll("input[type=datetime-local]")) localInput(input);

document.addEventListener("click", async (e) => {
  const copy = e.target.closest("button.copy");
  if (copy) {
    try {
      await navigator.clipboard.writeText(copy.parentElement.querySelector("pre").textContent);
      copy.textContent = "Copied";
    } catch {
      copy.textContent = "Select the text and copy it";
    }
    setTimeout(() => { copy.textContent = "Copy"; }, 2000);
  }
  const related = e.target.closest("button.related");
  if (related) {
    for (const event of document.querySelectorAll(".event[data-correlation]")) {
      event.classList.toggle("marked", event.dataset.correlation === related.dataset.correlation);
    }
  }
});

// A page says at its top since when the server has not answered, so that old contents do not look
// up to date.
const unanswered = document.getElementById("unanswered");
let answeredAt = new Date();
function answered(problem) {
  if (!problem) answeredAt = new Date();
  unanswered.hidden = !problem;
  const text = problem && `This page is not up to date: ${problem} since ${clock.format(answeredAt)}. It is tried again.`;
  if (problem && unanswered.textContent !== text) unanswered.textContent = text;
}
async function ask(url, options) {
  let reply;
  try {
    reply = await fetch(url, options);
  } catch {
    answered("the server has not answered");
    return null;
  }
  if (!reply.ok) answered(`the server has answered with the error ${reply.status}`);
  return reply.ok ? reply : null;
}

// Pages refresh their [data-live] part, unless the page is hidden, the visitor uses that part, or
// refreshing is switched off. Then they only ask whether the server answers, which reads nothing.
let everySeconds = Number(document.body.dataset.refresh);
const refreshBox = document.getElementById("refresh");
function busy(region) {
  return region.contains(document.activeElement) || region.querySelector("details[open]:not(.json)") || String(getSelection());
}
async function refresh() {
  if (document.hidden) return;
  const region = document.querySelector("[data-live]");
  if (!region || !refreshBox || !refreshBox.checked || busy(region)) {
    if (await ask(document.querySelector("link[rel=icon]").href, { method: "HEAD", cache: "no-store" })) answered();
    return;
  }
  const reply = await ask(location.href);
  if (!reply) return;
  const page = new DOMParser().parseFromString(await reply.text(), "text/html");
  const fresh = page.querySelector("[data-live]");
  if (!fresh) return answered("the server has answered with another page"); // for example a sign-in page
  answered();
  if (busy(region)) return;
  enliven(fresh);
  region.replaceChildren(...fresh.childNodes);
  const cost = page.getElementById("cost");
  enliven(cost);
  document.getElementById("cost").replaceChildren(...cost.childNodes);
  everySeconds = Number(page.body.dataset.refresh) || everySeconds;
}
if (refreshBox) {
  try { refreshBox.checked = localStorage.getItem("millrace-refresh") !== "off"; } catch { /* no storage */ }
  refreshBox.addEventListener("change", () => {
    try { localStorage.setItem("millrace-refresh", refreshBox.checked ? "on" : "off"); } catch { /* no storage */ }
  });
}
const askSeconds = 10; // on pages that do not refresh
let last = Date.now();
function refreshIfDue() {
  if (Date.now() - last < (everySeconds || askSeconds) * 1000) return;
  last = Date.now();
  refresh();
}
setInterval(refreshIfDue, 1000);
document.addEventListener("visibilitychange", () => { if (!document.hidden) refreshIfDue(); });

// A live tail is open while the page is visible and not paused.
const tail = document.getElementById("tail");
if (tail) {
  const most = 500;
  const list = document.getElementById("tail-events");
  const state = document.getElementById("tail-state");
  const cost = document.getElementById("tail-cost");
  const pause = document.getElementById("pause");
  const clear = document.getElementById("clear");
  const shown = new Set();
  let source = null;
  let paused = false;
  const template = document.createElement("template");

  function add(message) {
    const event = JSON.parse(message.data);
    if (shown.has(event.key)) return;
    shown.add(event.key);
    template.innerHTML = event.html; // the server has escaped the contents
    const item = document.createElement("li");
    item.className = "arrived";
    item.dataset.key = event.key;
    item.append(template.content);
    enliven(item);
    list.prepend(item);
    while (list.childElementCount > most) {
      shown.delete(list.lastElementChild.dataset.key);
      list.lastElementChild.remove();
    }
  }
  // The stream of a server that ends, as in a deployment, is opened again, with pauses that grow.
  let attempts = 0;
  let lostAt = null;
  let again = null;
  function lost(why) {
    close();
    lostAt = lostAt || new Date();
    const seconds = Math.min(2 ** attempts++, 30);
    state.textContent = `${why} No events since ${clock.format(lostAt)}. Connecting again…`;
    again = setTimeout(open, seconds * 1000);
  }
  function open() {
    clearTimeout(again);
    if (source || paused || document.hidden) return;
    if (!lostAt) state.textContent = "Connecting…";
    source = new EventSource(tail.dataset.stream);
    source.addEventListener("event", add);
    source.addEventListener("status", (message) => {
      const s = JSON.parse(message.data);
      if (lostAt) state.dataset.gap = `from ${clock.format(lostAt)} to ${clock.format(new Date())}`;
      attempts = 0;
      lostAt = null;
      answered();
      state.textContent = "Live" + (state.dataset.gap ? `. There was no connection ${state.dataset.gap}: some events of that time may not be shown.` : "");
      cost.textContent = `The tail has taken ${s.read_units} read units in ${Math.round(s.seconds)} seconds, for ${s.viewers === 1 ? "you alone" : s.viewers + " viewers"}.` +
        (s.missed ? ` ${s.missed} events were left out, as this page was too slow.` : "");
    });
    source.addEventListener("failed", (message) => { lost(JSON.parse(message.data).error); });
    source.onerror = () => { lost("The connection was lost."); };
  }
  function close() {
    clearTimeout(again);
    if (source) source.close();
    source = null;
  }
  pause.hidden = clear.hidden = false;
  pause.addEventListener("click", () => {
    paused = !paused;
    pause.textContent = paused ? "Resume" : "Pause";
    if (paused) { close(); state.textContent = "Paused. Nothing is read."; } else open();
  });
  clear.addEventListener("click", () => { list.replaceChildren(); });
  document.addEventListener("visibilitychange", () => {
    if (!document.hidden) open();
    else if (source) { close(); state.textContent = "Paused while hidden."; }
  });
  open();
}

enliven(document);
