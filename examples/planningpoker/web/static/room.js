// This module shows a room. It changes elements in place, so that keyboard users keep the focus, and
// a screen reader reads only changes. Names come from other users: they are always inserted as text,
// never as HTML.

import { time } from "./words.js";

const $ = (id) => document.getElementById(id);
const seats = new Map(); // by user id
let shown; // the shown view

// show shows a view of the room. pending is a clicked card that is not in the view yet.
export function show(view, pending) {
  document.title = `${view.name} – Planning poker`;
  $("name").textContent = view.name;
  $("about").textContent = `Round ${view.round}, open until ${time(view.expiresAt)}`;
  showEnding(view);
  showSeats(view);
  $("story").textContent = view.title;
  $("story").hidden = !view.title;
  showResult(view);
  showHand(view, pending);
  showActions(view);
  $("join").hidden = view.joined;
  $("play").hidden = !view.joined;
  if (shown) $("news").textContent = news(shown, view) || $("news").textContent;
  shown = view;
}

function showEnding(view) {
  const text = view.endsSoon ? `This room ends at ${time(view.expiresAt)}. Write down what you need of it before.` : "";
  if ($("ending").textContent !== text) $("ending").textContent = text;
  $("ending").hidden = !text;
}

function showSeats(view) {
  for (const user of view.users) {
    const seat = seats.get(user.userId) ?? addSeat(user);
    const you = user.userId === view.you;
    // The user's own card is face down too, since the screen may be shared.
    const face = view.revealed ? user.card ?? "" : "";
    seat.querySelector(".face").textContent = face;
    seat.querySelector(".face").className = `face ${size(face)}`;
    seat.querySelector(".card").classList.toggle("picked", user.picked);
    seat.querySelector(".card").classList.toggle("revealed", view.revealed && user.picked);
    seat.querySelector(".who").textContent = user.name + (you ? " (you)" : "");
    seat.querySelector(".state").textContent = state(view, user);
    const kick = seat.querySelector(".kick");
    kick.hidden = you || !view.joined;
    kick.setAttribute("aria-label", `Kick ${user.name}`);
  }
  const here = new Set(view.users.map((user) => user.userId));
  for (const [id, seat] of seats) {
    if (here.has(id)) continue;
    if (seat.contains(document.activeElement)) $("table-title").focus();
    seat.remove();
    seats.delete(id);
  }
}

function state(view, user) {
  const away = user.present ? "" : "away";
  if (view.revealed) return [user.picked ? "" : "no card", away].filter(Boolean).join(", ");
  if (user.picked) return ["has picked", away].filter(Boolean).join(", ");
  return away || "is thinking";
}

// size returns the CSS class for the text of a card.
const size = (card) => (card.length > 4 ? "long" : "");

function addSeat(user) {
  const seat = $("seat").content.firstElementChild.cloneNode(true);
  seat.dataset.user = user.userId;
  seats.set(user.userId, seat);
  $("seats").append(seat); // users are in the order of joining
  return seat;
}

function showResult(view) {
  const picked = view.users.filter((user) => user.picked);
  $("counts").hidden = !view.revealed;
  if (!view.revealed) {
    $("progress").textContent = view.users.length === 0 ? "Nobody is at the table yet" : `${picked.length} of ${view.users.length} have picked`;
    return;
  }
  $("progress").textContent = summary(picked.map((user) => user.card));
  const counts = view.deck
    .map((card) => [card, picked.filter((user) => user.card === card).length])
    .filter(([, count]) => count > 0);
  $("counts").replaceChildren(...counts.map(([card, count]) => {
    const item = document.createElement("li");
    item.textContent = `${card} × ${count}`;
    return item;
  }));
}

// summary summarises the cards. The average ignores cards that are not numbers.
export function summary(cards) {
  if (cards.length > 1 && new Set(cards).size === 1) return `All picked ${cards[0]}`;
  const numbers = cards.map((card) => (card === "½" ? 0.5 : Number(card))).filter((number) => !Number.isNaN(number));
  if (numbers.length === 0) return "The cards are on the table";
  const average = numbers.reduce((sum, number) => sum + number, 0) / numbers.length;
  return `Average ${Number(average.toFixed(1))}, from ${Math.min(...numbers)} to ${Math.max(...numbers)}`;
}

function showHand(view, pending) {
  const hand = $("hand");
  if (hand.childElementCount === 0) {
    for (const card of view.deck) {
      const button = document.createElement("button");
      button.type = "button";
      button.className = `card ${size(card)}`;
      button.textContent = button.value = card;
      button.tabIndex = hand.childElementCount === 0 ? 0 : -1;
      hand.append(button);
    }
  }
  const chosen = pending ?? view.users.find((user) => user.userId === view.you)?.card;
  for (const button of hand.children) {
    button.setAttribute("aria-pressed", button.value === chosen);
    // It is not disabled, since that would remove the focus.
    button.setAttribute("aria-disabled", view.revealed);
  }
  $("hand-title").textContent = view.revealed ? "Refresh the table to pick again" : "Your card";
}

// nextStory returns the typed title of the next round.
export const nextStory = () => $("next").elements.title.value.trim();

// canReveal and canRefresh report whether there are cards, or another story. Their buttons are not
// disabled, since that would remove the focus.
export const canReveal = (view) => !view.revealed && view.users.some((user) => user.picked);
export const canRefresh = (view) => view.revealed || view.users.some((user) => user.picked) || !["", view.title].includes(nextStory());

export function showActions(view) {
  $("reveal").setAttribute("aria-disabled", !canReveal(view));
  $("refresh").setAttribute("aria-disabled", !canRefresh(view));
}

// moveInHand makes the hand a single tab stop. The arrow keys move within it.
export function moveInHand(event) {
  const cards = [...event.currentTarget.children];
  const at = cards.indexOf(event.target);
  const to = { ArrowRight: at + 1, ArrowDown: at + 1, ArrowLeft: at - 1, ArrowUp: at - 1, Home: 0, End: cards.length - 1 }[event.key];
  if (to === undefined || at < 0) return;
  event.preventDefault();
  stopAt(cards, cards[(to + cards.length) % cards.length]).focus();
}

// stopAt makes a card the tab stop.
export function stopAt(cards, card) {
  for (const other of cards) other.tabIndex = other === card ? 0 : -1;
  return card;
}

function news(before, now) {
  const others = (view) => view.users.filter((user) => user.userId !== now.you);
  const missing = (users, view) => users.filter((user) => !view.users.some((other) => other.userId === user.userId)).map((user) => user.name);
  const came = missing(others(now), before), went = missing(others(before), now);
  const turned = (present) => others(now).filter((user) => user.present === present
    && before.users.some((other) => other.userId === user.userId && other.present !== present)).map((user) => user.name);
  const away = turned(false), back = turned(true);
  return [
    came.length > 0 && `${came.join(", ")} joined.`,
    went.length > 0 && `${went.join(", ")} left the table.`,
    away.length > 0 && `Away: ${away.join(", ")}.`,
    back.length > 0 && `Back: ${back.join(", ")}.`,
    now.round > before.round && `Round ${now.round} has begun${now.title && `: ${now.title}`}.`,
  ].filter(Boolean).join(" ");
}
