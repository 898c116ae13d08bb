// Drawings are unpacked when they come near. They show what is at the pointer, hide strategies, and have a large view.
const tip = document.createElement("div"), sheet = new CSSStyleSheet(), hidden = new Set();
let focus = "";
tip.className = "tip";
tip.hidden = true;
document.body.append(tip);
document.adoptedStyleSheets.push(sheet);

const chosen = (name) => `[data-strategy="${CSS.escape(name)}"]`;
const restyle = () => {
  const rules = [...hidden].flatMap((name) => [
    `.drawing ${chosen(name)} { visibility: hidden; }`,
    `.drawing [id*="legend"] ${chosen(name)} { visibility: visible; opacity: 0.3; }`,
  ]);
  if (focus) rules.push(`.drawing [data-strategy]:not(${chosen(focus)}) { opacity: 0.12; }`);
  sheet.replaceSync(rules.join("\n"));
};
const unpack = async (box) => {
  const packed = box.dataset.packed;
  if (!packed) return;
  delete box.dataset.packed;
  const bytes = Uint8Array.from(atob(packed), (letter) => letter.charCodeAt(0));
  box.innerHTML = await new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"))).text();
  describe(box);
};
const describe = (box) => {
  for (const title of box.querySelectorAll("g > title")) {
    title.parentElement.dataset.about = title.textContent; // shown at once, and not a second time by the browser
    title.remove();
  }
};

const value = ([, , scale, low, high, first, last], place) => {
  const share = (place - first) / (last - first);
  return scale === "log" ? low * (high / low) ** share : low + share * (high - low);
};
const written = ([label, unit], number, digits) =>
  `${label}: ${new Intl.NumberFormat("en", { maximumSignificantDigits: digits }).format(number)}${unit && " "}${unit}`;
const height = (curve, x) => {
  const path = curve.querySelector("path");
  curve.points ??= path ? path.getAttribute("d").match(/-?[\d.]+/g).map(Number) : [];
  const points = curve.points;
  for (let i = 2; i < points.length; i += 2) {
    const [before, after] = [points[i - 2], points[i]];
    if (before <= x && x <= after) {
      const share = after > before ? (x - before) / (after - before) : 1;
      return points[i - 1] + share * (points[i + 1] - points[i - 1]);
    }
  }
  return NaN;
};
const read = (panel, event) => {
  const touched = event.target.closest("[data-strategy]")?.dataset.strategy;
  const matrix = panel.ownerSVGElement.getScreenCTM().inverse();
  const { x, y } = new DOMPoint(event.clientX, event.clientY).matrixTransform(matrix);
  const near = [...panel.querySelectorAll("[data-curve]")]
    .filter(({ dataset: { strategy } }) => !hidden.has(strategy) && (!touched || strategy === touched))
    .map((curve) => ({ name: curve.dataset.strategy, at: height(curve, x) }))
    .filter(({ at }) => touched ? !Number.isNaN(at) : Math.abs(at - y) < 12)
    .sort((a, b) => Math.abs(a.at - y) - Math.abs(b.at - y))[0];
  if (!near) return null;
  const [across, up] = [JSON.parse(panel.dataset.x), JSON.parse(panel.dataset.y)];
  return [near.name, `${near.name}\n${written(up, value(up, near.at), 5)}\n${written(across, value(across, x), 3)}`];
};
const about = (event) => {
  const target = event.target.closest?.(".drawing") && event.target;
  if (!target) return ["", ""];
  const panel = target.closest("[data-x]"), marked = target.closest("[data-about]");
  const seen = panel && read(panel, event);
  if (seen) return seen;
  return marked ? [marked.dataset.strategy ?? "", marked.dataset.about] : ["", ""];
};
const point = (event) => {
  const [name, text] = about(event);
  if (name !== focus) {
    focus = hidden.has(name) ? "" : name;
    restyle();
  }
  tip.hidden = !text;
  if (!text) return;
  tip.textContent = text;
  const { offsetWidth, offsetHeight } = tip;
  tip.style.left = `${Math.max(4, Math.min(event.clientX + 14, innerWidth - offsetWidth - 4))}px`;
  tip.style.top = `${event.clientY + 18 + offsetHeight > innerHeight ? event.clientY - offsetHeight - 10 : event.clientY + 18}px`;
};
document.addEventListener("pointermove", point);
document.addEventListener("pointerdown", point); // a finger does not hover

const large = document.querySelector("dialog"), stage = large.querySelector(".stage");
let zoom, from;
const enlarge = async (box) => {
  await unpack(box);
  from = box;
  stage.append(...box.childNodes);
  large.append(tip);
  large.showModal();
  zoom = Panzoom(stage.firstElementChild, { canvas: true, maxScale: 40, minScale: 0.5, step: 0.4 });
};
stage.addEventListener("wheel", (event) => zoom.zoomWithWheel(event), { passive: false });
large.addEventListener("close", () => {
  zoom.reset({ animate: false });
  zoom.destroy();
  stage.firstElementChild.removeAttribute("style");
  from.append(...stage.childNodes);
  document.body.append(tip);
});
const actions = { in: () => zoom.zoomIn(), out: () => zoom.zoomOut(), reset: () => zoom.reset(), close: () => large.close() };
for (const button of large.querySelectorAll("button")) button.addEventListener("click", actions[button.value]);
for (const button of document.querySelectorAll("button.enlarge")) {
  button.addEventListener("click", () => enlarge(button.parentElement.querySelector(".drawing")));
}
for (const box of document.querySelectorAll("input[type=checkbox]")) {
  box.addEventListener("change", () => {
    hidden[box.checked ? "delete" : "add"](box.value);
    restyle();
  });
}
const near = new IntersectionObserver(
  (entries) => entries.filter((entry) => entry.isIntersecting).forEach((entry) => unpack(entry.target)),
  { rootMargin: "800px" },
);
for (const box of document.querySelectorAll(".drawing")) box.dataset.packed ? near.observe(box) : describe(box);
addEventListener("beforeprint", () => document.querySelectorAll("[data-packed]").forEach(unpack));
