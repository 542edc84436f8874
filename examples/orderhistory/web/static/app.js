import { askForChange, askForEnd, askForOrder } from "./dialogs.js";
import { forgetShown, late, remember } from "./late.js";
import { orderAt, show } from "./orders.js";
import { place, unanswered } from "./placing.js";
import { act, newKey, request, watch } from "./server.js";
import { isolated } from "./text.js";

const $ = (id) => document.getElementById(id);

const firstConsumer = "ada"; // of the sample
const pageSize = 10;
const thisTab = newKey(); // part of the idempotency keys of its commands
const reloadDelay = 1_500; // ms; by then the server may have restarted, and the index includes the change of an event

const versionOf = { orders: "order", tickets: "ticket", deliveries: "delivery" };

let view; // the view in the address: {consumer, params, trail, path}
let shown; // the shown view
let leave; // ends watching the consumer
let loading = false, stale = false, timer;

function say(id, text) {
  $(id).textContent = text || "";
  $(id).hidden = !text;
}

const connected = (there) => ($("connection").textContent = there ? "" : "Connection lost, trying again …");

// midnight returns the beginning of a day for the visitor. It passes an invalid day to the server,
// which refuses it.
function midnight(day, later) {
  const at = new Date(`${day}T00:00`);
  if (Number.isNaN(at.valueOf())) return day;
  at.setDate(at.getDate() + later);
  return at.toISOString();
}

const addressOf = (params) => `${location.pathname}?${new URLSearchParams(params)}`;

function go(params, trail) {
  history.pushState({ trail }, "", addressOf(params));
  open();
}

// open shows the view in the address. The trail holds the tokens of the newer pages, starting with
// the newest; it is empty after a link.
function open() {
  const params = new URLSearchParams(location.search);
  const consumer = params.get("consumer") || firstConsumer;
  const query = new URLSearchParams({ pageSize });
  for (const [name, value] of params) {
    if (name === "from") query.set("since", midnight(value, 0));
    else if (name === "to") query.set("until", midnight(value, 1));
    else if (name !== "consumer") query.set(name, value); // unknown ones too; the server refuses them
  }
  if (consumer !== view?.consumer) leave = leave?.();
  const filtered = [...query.keys()].some((name) => name !== "pageSize" && name !== "pageToken");
  if (!view) $("filters").open = filtered || matchMedia("(min-width: 48rem)").matches;
  const trail = params.has("pageToken") ? history.state?.trail : [];
  view = { consumer, params, filtered, trail, path: `/consumers/${encodeURIComponent(consumer)}/orders?${query}` };

  document.title = $("title").textContent = `Orders of ${consumer}`;
  $("consumer").value = consumer;
  for (const field of $("filter").elements) {
    if (!field.name) continue;
    field.value = params.get(field.name) ?? "";
    if (field.selectedIndex < 0) field.value = "";
  }
  boundDays();
  lead("all", filtered, { consumer });
  $("news").textContent = "Newest first. Changes show by themselves.";
  say("message");
  load();
}

// lead makes a link to another view.
function lead(id, visible, params, trail) {
  $(id).hidden = !visible;
  $(id).href = addressOf(params);
  $(id).onclick = (event) => {
    if (event.ctrlKey || event.metaKey || event.shiftKey) return; // for another window
    event.preventDefault();
    go(params, trail);
    $("title").focus();
  };
}

function leadToPage(id, visible, token, trail) {
  const params = new URLSearchParams(view.params);
  params.delete("pageToken");
  if (token) params.set("pageToken", token);
  lead(id, visible, params, trail);
}

// load shows the view. If something has changed meanwhile, it shows the view again.
async function load() {
  stale = true;
  if (loading) return;
  loading = true;
  try {
    while (stale) {
      stale = false;
      const asked = view;
      const [page, problem] = await request("GET", asked.path).then((page) => [page], (problem) => [undefined, problem]);
      if (asked !== view) continue; // open has requested it already
      if (page) showPage(page);
      else showProblem(problem);
    }
  } finally {
    loading = false;
  }
}

function loadLater() {
  clearTimeout(timer);
  timer = setTimeout(load, reloadDelay);
}

function changed() {
  load();
  loadLater();
}

function showPage({ orders, nextPageToken }) {
  const { consumer, params, filtered, trail } = view;
  const news = show(orders);
  if (shown === view && news.length > 0) $("news").replaceChildren(...news);
  shown = view;
  connected(true);
  say("refusal");
  const nothing = nextPageToken ? "None of the orders that were looked at for this page matches. Older ones may."
    : filtered ? "No order matches the filter." : `${consumer} has no orders here yet.`;
  say("none", orders.length === 0 && nothing);
  const token = params.get("pageToken") ?? "";
  leadToPage("older", nextPageToken, nextPageToken, trail && [...trail, token]);
  leadToPage("newer", trail?.length, trail?.at(-1), trail?.slice(0, -1));
  leadToPage("newest", token && trail?.length !== 1);
  leave ??= watch(`/consumers/${encodeURIComponent(consumer)}/events`, "orders", { changed, connected });
  showLate();
}

// showLate lists the accepted commands that the history does not show yet.
async function showLate() {
  await forgetShown();
  const commands = late().filter(({ consumer }) => consumer === view.consumer);
  $("late").replaceChildren(...commands.flatMap(({ of, restaurant }) =>
    [`${of} `, isolated(restaurant), " was accepted and is on its way. It will show here shortly. "]));
  $("late").hidden = commands.length === 0;
  if (commands.length > 0) loadLater();
}

const refusals = [400, 404, 410]; // of the view in the address; other errors are temporary

function showProblem({ status, message }) {
  if (!refusals.includes(status)) {
    connected(false);
    return loadLater();
  }
  leave = leave?.();
  show([]);
  say("none");
  say("refusal", message);
  $("older").hidden = $("newer").hidden = true;
  leadToPage("newest", view.params.has("pageToken"));
}

$("orders").onclick = ({ target: button }) => {
  if (!button.value) return;
  const order = orderAt(button);
  const { service } = button.closest("[data-service]").dataset;
  const what = { consumer: view.consumer, of: `“${button.textContent}” for`, restaurant: order.restaurant };
  // A repeated command for the shown state has the same key and takes effect once. Changes of the
  // dishes can differ.
  const key = button.value === "revise" ? newKey() : `${thisTab}/${button.value}/${order.versions[versionOf[service]]}`;
  const send = async (body) => {
    const reply = await request("POST", `/${service}/${encodeURIComponent(order.orderId)}/${button.value}?wait=2`, { body, key });
    remember(reply, what);
    changed();
  };
  if (button.value === "revise") askForChange(order, send);
  else if (button.value === "cancel") askForEnd(["Cancel the order from ", isolated(order.restaurant), "?"], "Cancel the order", send);
  else if (button.value === "decline") askForEnd(["Decline the order for ", isolated(order.restaurant), "?"], "Decline the order", send);
  else act(button, $("message"), () => send());
};

$("orders").onanimationend = ({ target }) => target.classList.remove("changed");

$("place").onclick = () => {
  const { consumer } = view;
  askForOrder(unanswered(consumer)?.order, async (order) => {
    await place(consumer, order);
    go({ consumer });
  });
};

$("choose").onsubmit = (event) => {
  event.preventDefault();
  go({ consumer: $("consumer").value.trim() });
};

// The browser reports, in the visitor's language, that the last day is before the first.
$("filter").oninput = boundDays;

function boundDays() {
  const { from, to } = $("filter").elements;
  to.min = from.value;
}

$("filter").onsubmit = (event) => {
  event.preventDefault();
  go([["consumer", view.consumer], ...[...new FormData($("filter"))].filter(([, value]) => value.trim())]);
};

window.onpopstate = open;
open();
