// This module shows orders. It changes elements in place, so that keyboard users keep the focus.
import { isolated } from "./text.js";

const $ = (id) => document.getElementById(id);
const rows = new Map(); // by order id: {order, element}

const done = ["APPROVED", "READY_FOR_PICKUP", "DELIVERED"];
const failed = ["REJECTED", "CANCELLED", "DECLINED"];

// orderAt returns the order of an element of the list.
export const orderAt = (element) => rows.get(element.closest(".order").dataset.order).order;

// show shows a page of orders, and returns what has changed, as texts and nodes.
export function show(orders) {
  const here = new Set(orders.map((order) => order.orderId));
  for (const [id, { element }] of rows) {
    if (here.has(id)) continue;
    if (element.contains(document.activeElement)) $("title").focus();
    element.remove();
    rows.delete(id);
  }
  let placed = true; // new orders come first; further down, older ones may have filled the page
  return orders.flatMap((order, i) => {
    placed &&= !rows.has(order.orderId);
    const row = rows.get(order.orderId) ?? add(order);
    // Orders do not change places, so remaining elements are not moved, which would remove the focus.
    if (row.element !== $("orders").children[i]) $("orders").insertBefore(row.element, $("orders").children[i]);
    const changes = update(row, order);
    if (placed) changes.push("order placed");
    return changes.length > 0 ? [isolated(order.restaurant), `: ${changes.join(", ")}. `] : [];
  });
}

const money = (cents) => (cents / 100).toLocaleString([], { minimumFractionDigits: 2 });
const words = (status) => status.charAt(0) + status.slice(1).toLowerCase().replaceAll("_", " ");

function add(order) {
  const element = $("order").content.firstElementChild.cloneNode(true);
  const part = (name) => element.querySelector(name);
  element.dataset.order = order.orderId;
  part(".sign").textContent = [...order.restaurant][0];
  part(".sign").style.setProperty("--hue", [...order.restaurant].reduce((sum, letter) => sum * 31 + letter.codePointAt(), 0) % 360);
  part(".restaurant").textContent = order.restaurant;
  part("time").dateTime = order.creationTime;
  part("time").textContent = new Date(order.creationTime).toLocaleString([], { dateStyle: "medium", timeStyle: "short" });
  part(".id").textContent = order.orderId;
  for (const button of element.querySelectorAll("button")) button.setAttribute("aria-label", `${button.textContent}: ${order.restaurant}`);
  return rows.set(order.orderId, { element }).get(order.orderId);
}

// update returns a text about the change.
function update(row, order) {
  const { element, order: before } = row;
  // An index may return an older state than before.
  if (before && Object.entries(before.versions).some(([service, version]) => order.versions[service] < version)) return [];
  row.order = order;
  const part = (name) => element.querySelector(name);
  const focus = element.contains(document.activeElement) && document.activeElement;
  const changes = [];
  for (const station of element.querySelectorAll("[data-of]")) {
    const name = station.dataset.of, status = order[name], [title, text] = station.children;
    station.className = !status ? "" : done.includes(status) ? "done" : failed.includes(status) ? "failed" : "now";
    text.textContent = status ? words(status) : failed.includes(order.status) ? "Not needed" : "Not asked yet";
    for (const button of station.querySelectorAll("button")) {
      const early = button.value === "pick-up" && order.ticketStatus !== "READY_FOR_PICKUP";
      button.hidden = button.dataset.during !== status || early;
    }
    if (before && before[name] !== status) changes.push(`${title.textContent} ${words(status)}`.toLowerCase());
  }
  const lines = part(".lines").textContent;
  part(".lines").replaceChildren(...order.lines.flatMap(({ name, quantity }, i) => [`${i ? ", " : ""}${quantity} × `, isolated(name)]));
  if (before && part(".lines").textContent !== lines) changes.push("dishes changed");
  part(".total").textContent = money(order.totalCents);
  part(".reason").replaceChildren("Reason: ", isolated(order.reason ?? ""));
  part(".reason").hidden = !order.reason;
  // Do not move the focus to the next button, which the user might press by mistake.
  if (focus?.hidden) element.focus();
  if (changes.length > 0) element.classList.add("changed");
  return changes;
}
