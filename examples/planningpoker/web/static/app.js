import { follow } from "./history.js";
import { ask, askStill, kick, refresh, reveal } from "./question.js";
import { canRefresh, canReveal, moveInHand, nextStory, show, showActions, stopAt } from "./room.js";
import { listen, request } from "./server.js";
import { sentence } from "./words.js";

const $ = (id) => document.getElementById(id);

function say(text) {
  $("message").textContent = text ?? "";
  $("message").hidden = !text;
}

// act executes the action of a control, one at a time, and shows errors. gone receives the reason
// if the room does not exist any more.
async function act(control, what, gone = say) {
  if (control.getAttribute("aria-busy") === "true") return;
  control.setAttribute("aria-busy", "true");
  say();
  try {
    await what();
  } catch (problem) {
    (problem.status === 410 ? gone : say)(problem.message);
  } finally {
    control.removeAttribute("aria-busy");
  }
}

function isMissing(roomId) {
  return request("GET", `/rooms/${roomId}`).then(() => false, (problem) => problem.status === 404);
}

function lobby() {
  const form = $("open");
  const { name, title, preset, deck, lifetime } = form.elements;
  $("lobby").hidden = false;
  preset.onchange = () => {
    $("own-deck").hidden = !(deck.required = preset.value === "own");
  };
  form.onsubmit = (event) => {
    event.preventDefault();
    act(form, async () => {
      const cards = (preset.value === "own" ? deck.value : preset.value).split(/\s+/).filter(Boolean);
      const room = { name: name.value.trim(), title: title.value.trim(), lifetimeMinutes: Number(lifetime.value) };
      if (cards.length > 0) room.deck = cards; // otherwise the server's default
      const { roomId } = await request("POST", "/rooms?wait=true", room);
      // If the view is far behind, it shows the room after the server has stopped waiting.
      for (let tries = 0; tries < 30 && await isMissing(roomId); tries++) await new Promise((wake) => setTimeout(wake, 1000));
      location.assign(`/r/${roomId}`);
    });
  };
}

function room(id) {
  const path = `/rooms/${id}`;
  const command = (name, body = {}) => request("POST", `${path}/${name}`, body);
  const closed = (reason) => over("This room has ended", reason);
  const attempt = (control, what) => act(control, what, closed);
  const { name } = $("join").elements;
  let view; // the newest view
  let pending; // the clicked card: {card, round, version}; version is that of its event, when known
  let started; // the story of a round that this page has started and that is not shown yet
  let leaving = false;

  function update(newest) {
    if (view && newest.version < view.version) return; // from a server that is behind the previous one
    const before = view;
    view = newest;
    if (pending?.version <= view.version || pending?.round < view.round) pending = undefined;
    const wasHere = document.activeElement?.closest("#play, #join");
    if (started && started === view.title) {
      if (nextStory() === started) $("next").reset();
      started = undefined;
    }
    show(view, pending?.card);
    $("room").hidden = false;
    follow(path, view);
    askStill(view);
    if (before?.joined && !view.joined && !leaving) {
      say("You are no longer at the table: somebody kicked you, or you left in another window. You can join again.");
    }
    // The element with the focus may have been hidden.
    if (before && before.joined !== view.joined && (wasHere || document.activeElement === document.body)) {
      (view.joined ? $("hand").querySelector("[tabindex='0']") : name).focus();
    }
    leaving &&= view.joined;
  }

  function over(title, detail) {
    end();
    $("connection").textContent = "";
    $("room").hidden = true;
    say();
    $("ask").close();
    document.title = `${title} – Planning poker`;
    $("over-title").textContent = title;
    $("over-detail").textContent = detail;
    $("over").hidden = false;
    $("over-title").focus();
  }

  const end = listen(`${path}/events`, {
    why: path,
    handlers: { room: update, gone: ({ detail }) => closed(sentence(detail)) },
    connected: (there) => {
      $("connection").textContent = {
        yes: "", no: "Connection lost, trying again …", paused: "Paused, as other windows show rooms. Click here to go on.",
      }[there];
    },
    refused: ({ status, message }) => (status === 410 ? closed(message) : over("There is no such room", message)),
  });

  $("link").value = location.href;
  $("link").onfocus = () => $("link").select();
  $("copy").onclick = async () => {
    try {
      await navigator.clipboard.writeText(location.href);
      $("news").textContent = "The link is copied.";
    } catch { // as everywhere but on https and on this machine
      $("link").focus();
      $("news").textContent = "Copy the link that is marked now.";
    }
  };

  name.value = localStorage.getItem("name") ?? "";
  $("join").onsubmit = (event) => {
    event.preventDefault();
    attempt($("join"), async () => {
      await command("join", { name: name.value.trim() });
      localStorage.setItem("name", name.value.trim());
    });
  };

  $("hand").onkeydown = moveInHand;
  $("hand").onclick = ({ target }) => {
    const card = target.closest("button");
    if (!card || view.revealed) return;
    stopAt($("hand").children, card);
    pending = { card: card.value, round: view.round };
    show(view, pending.card);
    attempt($("hand"), pick);
  };

  // pick sends the card that was clicked last, even if it was clicked while an earlier one was
  // being sent.
  async function pick() {
    let sent;
    try {
      while (pending && pending !== sent) {
        sent = pending;
        sent.version = (await command("pick", { card: sent.card, round: sent.round })).version;
      }
    } finally {
      if (!(pending?.version > view.version)) pending = undefined;
      show(view, pending?.card);
    }
  }

  // Send the round too, since another user may have ended it before the request arrives.
  $("reveal").onclick = async () => {
    const { round } = view;
    if (canReveal(view) && await ask(view, reveal(round))) attempt($("reveal"), () => command("reveal", { round }));
  };
  $("next").oninput = () => showActions(view);
  $("next").onsubmit = async (event) => {
    event.preventDefault();
    const { round, users } = view, title = nextStory();
    const asked = users.some((user) => user.picked);
    if (!canRefresh(view) || (asked && !await ask(view, refresh(round)))) return;
    attempt($("refresh"), async () => {
      started = title;
      await command("refresh", { round, title });
    });
  };
  $("leave").onclick = () => attempt($("leave"), async () => {
    leaving = true;
    await command("leave").catch((problem) => {
      leaving = false;
      throw problem;
    });
  });

  $("seats").onclick = async ({ target }) => {
    const userId = target.closest(".kick")?.closest("li").dataset.user;
    if (userId && await ask(view, kick(userId))) attempt($("seats"), () => command("kick", { userId }));
  };
}

const [, id] = location.pathname.match(/^\/r\/([^/]+)$/) ?? [];
if (id) room(id);
else lobby();
