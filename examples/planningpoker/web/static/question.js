// This module asks for confirmation before an action that cannot be undone.

const dialog = document.getElementById("ask");
let posed; // the open question: a function that returns its texts for a view

// ask asks a question about a room and resolves to true if the answer is yes. question returns the
// texts {title, detail, yes} for a view, or nothing if the question does not apply any more.
export function ask(view, question) {
  dialog.onclose?.(); // a late event of the previous question must not answer this one
  posed = question;
  dialog.returnValue = "";
  dialog.showModal();
  return new Promise((resolve) => {
    dialog.onclose = () => dialog.open || resolve(dialog.returnValue === "yes");
    askStill(view);
  });
}

// askStill updates the open question for a newer view, or closes it.
export function askStill(view) {
  if (!dialog.open) return;
  const texts = view.joined && posed(view);
  if (!texts) {
    dialog.close();
    return;
  }
  document.getElementById("ask-title").textContent = texts.title;
  document.getElementById("ask-detail").textContent = texts.detail;
  document.getElementById("ask-yes").textContent = texts.yes;
}

export const kick = (userId) => (view) => {
  const user = view.users.find((user) => user.userId === userId);
  return user && {
    title: `Kick ${user.name}?`,
    detail: `${user.name} has to leave the table, and can join again with the link to this room.`,
    yes: "Kick out",
  };
};

export const reveal = (round) => (view) => {
  const without = view.users.filter((user) => !user.picked);
  const name = (user) => (user.userId === view.you ? "you" : user.name) + (user.present ? "" : " (away)");
  return view.round === round && !view.revealed && without.length > 0 && {
    title: "Reveal the cards now?",
    detail: `Without a card: ${without.map(name).join(", ")}. Nobody can pick in this round after that.`,
    yes: "Reveal now",
  };
};

export const refresh = (round) => (view) => {
  const picked = view.users.filter((user) => user.picked).length;
  return view.round === round && picked > 0 && {
    title: "Refresh the table?",
    detail: view.revealed
      ? `The cards on the table are taken back, and round ${round + 1} begins.`
      : `${picked} of ${view.users.length} have picked. Their cards are taken back unseen, and round ${round + 1} begins.`,
    yes: `Start round ${round + 1}`,
  };
};
