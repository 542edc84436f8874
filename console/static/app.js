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

// Pages refresh their [data-live] part, unless the page is hidden, the visitor uses that part, or
// refreshing is switched off.
let everySeconds = Number(document.body.dataset.refresh);
const refreshBox = document.getElementById("refresh");
function busy(region) {
  return region.contains(document.activeElement) || region.querySelector("details[open]:not(.json)") || String(getSelection());
}
async function refresh() {
  const region = document.querySelector("[data-live]");
  if (document.hidden || !refreshBox.checked || busy(region)) return;
  try {
    const reply = await fetch(location.href);
    if (!reply.ok) throw new Error(reply.status);
    const page = new DOMParser().parseFromString(await reply.text(), "text/html");
    const fresh = page.querySelector("[data-live]");
    if (!fresh) throw new Error("the reply is another page"); // for example a sign-in page
    if (busy(region)) return;
    enliven(fresh);
    region.replaceChildren(...fresh.childNodes);
    const cost = page.getElementById("cost");
    enliven(cost);
    document.getElementById("cost").replaceChildren(...cost.childNodes);
    everySeconds = Number(page.body.dataset.refresh) || everySeconds;
  } catch {
    document.getElementById("cost").textContent = "The last refresh failed: the page is not up to date. It is tried again.";
  }
}
if (everySeconds && refreshBox) {
  try { refreshBox.checked = localStorage.getItem("millrace-refresh") !== "off"; } catch { /* no storage */ }
  refreshBox.addEventListener("change", () => {
    try { localStorage.setItem("millrace-refresh", refreshBox.checked ? "on" : "off"); } catch { /* no storage */ }
  });
  let last = Date.now();
  setInterval(() => {
    if (Date.now() - last >= everySeconds * 1000) { last = Date.now(); refresh(); }
  }, 1000);
  document.addEventListener("visibilitychange", () => {
    if (!document.hidden && Date.now() - last >= everySeconds * 1000) { last = Date.now(); refresh(); }
  });
}

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
  function open() {
    if (source || paused || document.hidden) return;
    state.textContent = "Connecting…";
    source = new EventSource(tail.dataset.stream);
    source.addEventListener("event", add);
    source.addEventListener("status", (message) => {
      const s = JSON.parse(message.data);
      state.textContent = "Live";
      cost.textContent = `The tail has taken ${s.read_units} read units in ${Math.round(s.seconds)} seconds, for ${s.viewers === 1 ? "you alone" : s.viewers + " viewers"}.` +
        (s.missed ? ` ${s.missed} events were left out, as this page was too slow.` : "");
    });
    source.addEventListener("failed", (message) => {
      close();
      state.textContent = JSON.parse(message.data).error;
    });
    source.onerror = () => { state.textContent = source && source.readyState === EventSource.CLOSED ? "The connection was refused." : "The connection was lost. It is tried again."; };
  }
  function close() {
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
