// This module keeps the commands that the server has accepted and that the history does not show
// yet. They survive a reload of the page.
import { request } from "./server.js";

const slot = "late";
const forgotten = 300_000; // ms; after that, the history may never show them, for example after a restart with another database

// late is a list of {orderId, service, version, at} with a description of the command: {consumer,
// of, restaurant}, and {sent, key} for an order.
export const late = () => (JSON.parse(sessionStorage.getItem(slot)) ?? []).filter(({ at }) => Date.now() - at < forgotten);

const keep = (commands) => sessionStorage.setItem(slot, JSON.stringify(commands));
const isSame = (a, b) => a.orderId === b.orderId && a.service === b.service;

// remember keeps a command after the reply to it, unless the history shows it already.
export function remember({ orderId, service, version, shown }, command) {
  const accepted = { orderId, service, version, at: Date.now(), ...command };
  keep([...late().filter((other) => !isSame(other, accepted)), ...(shown ? [] : [accepted])]);
}

// forgetShown queries the history, and removes the commands that it shows.
export async function forgetShown() {
  await Promise.all(late().map(async (command) => {
    const order = await request("GET", `/orders/${encodeURIComponent(command.orderId)}`).catch(() => undefined); // it may not have the order yet
    if (order?.versions[command.service] >= command.version) {
      keep(late().filter((other) => !isSame(other, command) || other.version > command.version));
    }
  }));
}
