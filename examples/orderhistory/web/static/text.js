// This module shows text that people wrote. It is always inserted as text, never as HTML.

// isolated returns an element for a text whose direction does not change that of its surroundings.
export function isolated(text) {
  const element = document.createElement("bdi");
  element.textContent = text;
  return element;
}
