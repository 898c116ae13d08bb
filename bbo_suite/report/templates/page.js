"use strict";
const key = (row, column) => {
  const cell = row.cells[column];
  return "key" in cell.dataset ? Number(cell.dataset.key) : cell.textContent;
};
const compare = (a, b, sign) => {
  if (Number.isNaN(a) || Number.isNaN(b)) return Number.isNaN(a) - Number.isNaN(b); // last in either order
  if (typeof a === "number" && typeof b === "number") return sign * (a < b ? -1 : a > b ? 1 : 0);
  if (typeof a !== typeof b) return typeof a === "number" ? -1 : 1;
  return sign * a.localeCompare(b, "en", { numeric: true });
};
const sort = (head) => {
  const table = head.closest("table"), column = head.cellIndex;
  const first = head.classList.contains("number") ? "descending" : "ascending";
  const second = first === "ascending" ? "descending" : "ascending";
  const order = head.getAttribute("aria-sort") === first ? second : first;
  const sign = order === "ascending" ? 1 : -1;
  for (const other of head.parentElement.cells) other.removeAttribute("aria-sort");
  head.setAttribute("aria-sort", order);
  const body = table.tBodies[0];
  body.append(...[...body.rows].sort((a, b) => compare(key(a, column), key(b, column), sign)));
};
const filter = (input) => {
  const wanted = input.value.toLowerCase();
  for (const row of input.closest("section").querySelectorAll("tbody tr")) {
    row.hidden = !row.textContent.toLowerCase().includes(wanted);
  }
};
for (const head of document.querySelectorAll("th")) head.querySelector("button").addEventListener("click", () => sort(head));
for (const input of document.querySelectorAll("input[type=search]")) input.addEventListener("input", () => filter(input));
