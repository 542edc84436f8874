// Texts that several modules make.

// time is a moment as its reader's clock shows it, with the day unless that is today.
export function time(text) {
  const at = new Date(text);
  const today = at.toDateString() === new Date().toDateString();
  return at.toLocaleString([], { weekday: today ? undefined : "long", hour: "2-digit", minute: "2-digit" });
}

// sentence makes one of a reason that the server gives, with its times as time shows them.
export function sentence(text) {
  const local = text.replace(/\d{4}-\d\d-\d\dT[\d:.]+Z/g, time);
  return local.charAt(0).toUpperCase() + local.slice(1) + (/[.!?]$/.test(local) ? "" : ".");
}
