// What a visitor is asked for: the dishes of an order, or why it ends.
import { act } from "./server.js";

const $ = (id) => document.getElementById(id);

// ask opens a dialog, and closes it once what its form has to say is sent. What goes wrong is said where the visitor is.
function ask(name, title, label, send) {
  const dialog = $(`${name}-dialog`), form = $(`${name}-form`), message = dialog.querySelector(".message");
  $(`${name}-title`).textContent = title;
  $(`${name}-send`).textContent = label;
  message.hidden = true;
  dialog.querySelector(".close").onclick = () => dialog.close();
  form.onsubmit = (event) => {
    event.preventDefault();
    act(form, message, async () => {
      await send(form.elements);
      dialog.close();
    });
  };
  dialog.showModal();
}

// askForOrder asks for an order, or for other dishes where there is one.
export function askForOrder(order, send) {
  const { restaurant } = $("order-form").elements;
  restaurant.value = "";
  restaurant.disabled = restaurant.closest("label").hidden = order !== undefined;
  $("dishes").replaceChildren(...(order?.lines ?? [undefined]).map(dish));
  $("more").onclick = () => {
    $("dishes").append(dish());
    $("dishes").lastElementChild.elements.name.focus();
  };
  const [title, label] = order ? [`Change the order from ${order.restaurant}`, "Send the change"] : ["Place an order", "Send the order"];
  ask("order", title, label, () => send({ restaurant: restaurant.value.trim(), lines: [...$("dishes").children].map(lineOf) }));
}

function dish(line) {
  const element = $("dish").content.firstElementChild.cloneNode(true);
  const { name, quantity, price } = element.elements;
  if (line) {
    name.value = line.name;
    quantity.value = line.quantity;
    price.value = (line.priceCents / 100).toFixed(2);
  }
  element.querySelector(".remove").onclick = () => {
    element.remove();
    $("more").focus();
  };
  return element;
}

const lineOf = ({ elements: { name, quantity, price } }) =>
  ({ name: name.value.trim(), quantity: quantity.valueAsNumber, priceCents: Math.round(price.valueAsNumber * 100) });

// askForEnd asks why an order ends, which may be left open.
export function askForEnd(title, label, send) {
  $("end-form").elements.reason.value = "";
  ask("end", title, label, ({ reason }) => send(reason.value.trim() ? { reason: reason.value.trim() } : undefined));
}
