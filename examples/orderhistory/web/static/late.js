// Commands that the server has accepted and that the history does not show yet.
import { request } from "./server.js";

const late = new Map(); // by service and order: {orderId, service, version, what, shown}

// expect remembers a command by the reply to it, unless the history shows it already. What was accepted is a list of nodes and texts; shown
// is called once the history shows it.
export function expect(reply, what, shown = () => {}) {
  if (reply.shown) return shown();
  const { orderId, service, version } = reply;
  late.set(`${service}/${orderId}`, { orderId, service, version, what, shown });
}

// stillLate asks the history, and returns what it does not show yet.
export async function stillLate() {
  await Promise.all([...late].map(async ([id, { orderId, service, version, shown }]) => {
    const order = await request("GET", `/orders/${encodeURIComponent(orderId)}`).catch(() => undefined); // it may not have the order
    if (order?.versions[service] >= version && late.delete(id)) shown();
  }));
  return [...late.values()].map(({ what }) => what);
}
