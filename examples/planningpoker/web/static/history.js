// This module shows the rounds of the room that are revealed or over. They do not change any more,
// so shown rounds are not updated. Titles and names come from other users: they are always inserted
// as text, never as HTML.

import { summary } from "./room.js";
import { request } from "./server.js";
import { time } from "./words.js";

const $ = (id) => document.getElementById(id);
let first = 0; // the number of the newest shown round
let older; // the path of the earlier rounds, if there are any
let wanted = 0; // the number of the newest round to show
let reading = false;

// follow reads the history again if a round was revealed or ended since the last read. After a
// failure it tries again with the next view.
export async function follow(path, view) {
  wanted = view.revealed ? view.round : view.round - 1;
  if (reading) return;
  reading = true;
  await attempt(async () => {
    for (let tried = 0; first < wanted && tried < wanted;) {
      tried = wanted;
      showNewest(await request("GET", `${path}/history`));
    }
  });
  reading = false;
}

async function attempt(what) {
  try {
    await what();
    $("history-problem").textContent = "";
  } catch (problem) {
    $("history-problem").textContent = `The history could not be read. ${problem.message}`;
    $("history").hidden = false;
  }
}

function showNewest(page) {
  if (page.rounds.length === 0) return;
  if (!first || page.rounds.at(-1).round > first + 1) { // nothing is shown, or rounds in between would be missing
    $("rounds").replaceChildren();
    first = page.rounds.at(-1).round - 1;
    showOlder(page.older);
  }
  $("rounds").prepend(...page.rounds.filter((round) => round.round > first).map(item));
  first = page.rounds[0].round;
  $("history").hidden = false;
}

function showOlder(path) {
  older = path;
  $("older").hidden = !path;
}

$("older").onclick = () => attempt(async () => {
  const path = older;
  const page = await request("GET", path);
  if (path !== older) return; // clicked twice, or restarted from the newest
  const items = page.rounds.map(item);
  $("rounds").append(...items);
  showOlder(page.older);
  items[0]?.querySelector("h3").focus();
});

function item({ round, title, revealedAt, picks = [] }) {
  const item = $("round").content.firstElementChild.cloneNode(true);
  item.querySelector("h3").textContent = `Round ${round}${title && `: ${title}`}`;
  item.querySelector("p").textContent = revealedAt
    ? `${summary(picks.map((pick) => pick.card))}. Revealed ${time(revealedAt)}.`
    : "Without result, as the table was refreshed before the cards were revealed.";
  const list = item.querySelector("ul");
  list.setAttribute("aria-label", `Picks of round ${round}`);
  list.hidden = picks.length === 0;
  list.append(...picks.map(({ name, card }) => {
    const pick = document.createElement("li");
    pick.textContent = `${name}: ${card}`;
    return pick;
  }));
  return item;
}
