// This module places an order once, however often it is sent. It sends an idempotency key with the
// order. The key survives a reload of the page, until the server has replied and the history shows
// the order.
import { late, remember } from "./late.js";
import { newKey, Problem, request } from "./server.js";

// unanswered returns the order of a consumer that was sent without a reply: {order, key}, or null.
export const unanswered = (consumer) => JSON.parse(sessionStorage.getItem(slot(consumer)));

const slot = (consumer) => `unanswered/${consumer}`;

// place sends an order. It throws a Problem if the order was not placed, or if that is unknown.
export async function place(consumer, order) {
  const before = unanswered(consumer), sent = JSON.stringify([consumer, order]);
  const key = before?.key ?? late().find((command) => command.sent === sent)?.key ?? newKey();
  sessionStorage.setItem(slot(consumer), JSON.stringify({ order, key }));
  let reply;
  try {
    reply = await request("POST", "/orders?wait=2", { body: { consumerId: consumer, ...order }, key });
  } catch (problem) {
    if (!problem.open) sessionStorage.removeItem(slot(consumer));
    if (problem.status === 422 && before) {
      throw new Problem(422, "The order that you sent before was accepted. To place this one as well, send it again.");
    }
    throw problem;
  }
  sessionStorage.removeItem(slot(consumer));
  remember(reply, { consumer, of: "Your order from", restaurant: order.restaurant, sent, key });
}
