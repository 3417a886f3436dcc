"use strict";
(() => {
  const byId = (name) => document.getElementById(name);
  const root = document.documentElement;

  // Light and dark: the reader's system, until the button is pressed.
  const theme = byId("theme");
  const system = matchMedia("(prefers-color-scheme: dark)");
  const isDark = () => (root.dataset.theme ? root.dataset.theme === "dark" : system.matches);
  const showTheme = () => {
    theme.textContent = isDark() ? "Light" : "Dark";
    theme.setAttribute("aria-label", isDark() ? "Use light colours" : "Use dark colours");
  };
  theme.hidden = false;
  theme.addEventListener("click", () => { root.dataset.theme = isDark() ? "light" : "dark"; showTheme(); });
  system.addEventListener("change", showTheme);
  showTheme();

  // The section that is being read, in the contents.
  const links = new Map([...document.querySelectorAll(".contents a")].map((a) => [a.hash.slice(1), a]));
  const visible = new Set();
  const watcher = new IntersectionObserver((entries) => {
    for (const entry of entries) visible[entry.isIntersecting ? "add" : "delete"](entry.target.id);
    const here = [...links.keys()].find((id) => visible.has(id));
    for (const [id, link] of links) id === here ? link.setAttribute("aria-current", "true") : link.removeAttribute("aria-current");
  }, { rootMargin: "-80px 0px -50% 0px" });
  for (const id of links.keys()) if (byId(id)) watcher.observe(byId(id));

  // What is wider or higher than its place can be scrolled by keys.
  const regions = [...document.querySelectorAll("[data-region]")];
  const reach = () => {
    for (const part of regions) {
      const cut = part.scrollWidth > part.clientWidth + 1 || part.scrollHeight > part.clientHeight + 1;
      if (cut) { part.tabIndex = 0; part.setAttribute("role", "region"); part.setAttribute("aria-label", part.dataset.region); }
      else for (const name of ["tabindex", "role", "aria-label"]) part.removeAttribute(name);
    }
  };
  addEventListener("resize", reach);
  reach();

  // The order of the Gram matrix.
  const orders = byId("orders");
  const choice = orders && orders.querySelector(".switch");
  if (choice) {
    const show = () => {
      const wanted = choice.querySelector(":checked").value;
      for (const part of orders.querySelectorAll("[data-order]")) part.hidden = part.dataset.order !== wanted;
    };
    choice.hidden = false;
    choice.addEventListener("change", show);
    show();
  }

  const canvas = byId("canvas");
  if (!canvas) return;
  const svg = canvas.querySelector("svg");
  const tip = byId("tip");
  const marks = [...svg.querySelectorAll(".gk-mark")];
  const whole = svg.getAttribute("viewBox").split(" ").map(Number);
  let view = [...whole];
  let current = -1;
  byId("controls").hidden = byId("keys").hidden = false;

  // Zoom and move: the view never leaves the whole picture.
  const MOST = 40;
  const look = () => {
    svg.setAttribute("viewBox", view.map((v) => +v.toFixed(3)).join(" "));
    svg.style.setProperty("--mark", Math.max(Math.pow(view[2] / whole[2], 0.75), 0.02));
  };
  const clamp = (value, low, high) => Math.min(Math.max(value, low), high);
  const move = (dx, dy) => {
    view[0] = clamp(view[0] + dx, whole[0], whole[0] + whole[2] - view[2]);
    view[1] = clamp(view[1] + dy, whole[1], whole[1] + whole[3] - view[3]);
    hide();
    look();
  };
  const zoom = (factor, x = view[0] + view[2] / 2, y = view[1] + view[3] / 2) => {
    const width = clamp(view[2] / factor, whole[2] / MOST, whole[2]);
    const ratio = width / view[2];
    view = [x - (x - view[0]) * ratio, y - (y - view[1]) * ratio, width, view[3] * ratio];
    move(0, 0);
  };
  const all = () => { view = [...whole]; hide(); look(); };
  const place = (event) => {
    const box = svg.getBoundingClientRect();
    return [view[0] + ((event.clientX - box.left) / box.width) * view[2], view[1] + ((event.clientY - box.top) / box.height) * view[3]];
  };

  // What is said of an object.
  const hide = () => {
    if (current >= 0) marks[current].classList.remove("here");
    current = -1;
    tip.hidden = true;
  };
  const show = (i) => {
    hide();
    const mark = marks[i];
    const data = mark.dataset;
    const lines = [];
    if (data.label !== undefined) lines.push(`class ${data.label}`);
    if (data.predicted !== undefined) lines.push(`predicted ${data.predicted}${data.label === undefined || data.label === data.predicted ? "" : " (wrong)"}`);
    const name = document.createElement("b");
    name.textContent = data.id === undefined ? `object ${data.i}` : data.id;
    tip.replaceChildren(name, lines.join(", "));
    tip.hidden = false;
    current = i;
    mark.classList.add("here");
    const box = canvas.getBoundingClientRect();
    const at = mark.getBoundingClientRect();
    const right = at.right - box.left + 10;
    const x = right + tip.offsetWidth <= box.width ? right : at.left - box.left - tip.offsetWidth - 10;
    tip.style.left = `${clamp(x, 4, Math.max(4, box.width - tip.offsetWidth - 4))}px`;
    tip.style.top = `${clamp(at.top - box.top - 8, 4, Math.max(4, box.height - tip.offsetHeight - 4))}px`;
  };
  const step = (by) => {
    const from = current;
    for (let k = 1; k <= marks.length; k += 1) {
      const i = (((from < 0 && by < 0 ? 0 : from) + by * k) % marks.length + marks.length) % marks.length;
      if (marks[i].classList.contains("off")) continue;
      const box = marks[i].getBBox();
      const [x, y] = [box.x + box.width / 2, box.y + box.height / 2];
      if (x < view[0] || x > view[0] + view[2] || y < view[1] || y > view[1] + view[3]) move(x - view[0] - view[2] / 2, y - view[1] - view[3] / 2);
      show(i);
      return;
    }
  };
  svg.addEventListener("pointerover", (event) => {
    const mark = event.target.closest(".gk-mark");
    if (mark) show(marks.indexOf(mark));
  });
  svg.addEventListener("pointerout", (event) => { if (event.target.closest(".gk-mark")) hide(); });

  // Mouse, fingers, wheel, buttons, keys.
  let from = null;
  svg.addEventListener("pointerdown", (event) => {
    if (event.button !== 0) return;
    canvas.focus({ preventScroll: true });
    from = [event.clientX, event.clientY];
  });
  addEventListener("pointermove", (event) => {
    if (!from || (!(event.buttons & 1))) { from = null; canvas.classList.remove("moving"); return; }
    const box = svg.getBoundingClientRect();
    const [dx, dy] = [event.clientX - from[0], event.clientY - from[1]];
    if (Math.hypot(dx, dy) < 3) return;
    canvas.classList.add("moving");
    from = [event.clientX, event.clientY];
    move((-dx / box.width) * view[2], (-dy / box.height) * view[3]);
  });
  addEventListener("pointerup", () => { from = null; canvas.classList.remove("moving"); });
  canvas.addEventListener("wheel", (event) => {
    if (document.activeElement !== canvas && !event.ctrlKey) return;
    event.preventDefault();
    zoom(Math.exp(-clamp(event.deltaY, -200, 200) / 300), ...place(event));
  }, { passive: false });
  for (const button of document.querySelectorAll("[data-zoom]")) {
    button.addEventListener("click", () => ({ in: () => zoom(1.5), out: () => zoom(1 / 1.5), all })[button.dataset.zoom]());
  }
  const keys = {
    "+": () => zoom(1.5), "=": () => zoom(1.5), "-": () => zoom(1 / 1.5), 0: all,
    ArrowLeft: () => move(-view[2] / 10, 0), ArrowRight: () => move(view[2] / 10, 0),
    ArrowUp: () => move(0, -view[3] / 10), ArrowDown: () => move(0, view[3] / 10),
    n: () => step(1), p: () => step(-1),
    Escape: () => { if (current >= 0) hide(); else canvas.blur(); },
  };
  canvas.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || !keys[event.key]) return;
    event.preventDefault();
    keys[event.key]();
  });

  // The filter.
  const inputs = ["by-class", "by-outcome", "by-id"].map(byId);
  const filter = () => {
    const [label, outcome, text] = inputs.map((input) => (input ? input.value : ""));
    const part = text.trim().toLowerCase();
    const byClass = inputs[0] && inputs[0].selectedIndex > 0;
    let count = 0;
    for (const mark of marks) {
      const data = mark.dataset;
      const right = data.label === data.predicted ? "right" : "wrong";
      const on = (!byClass || data.label === label) && (!outcome || right === outcome) && (!part || (data.id || "").toLowerCase().includes(part));
      mark.classList.toggle("off", !on);
      count += on;
    }
    hide();
    byId("shown").textContent = `${count} of ${marks.length} objects shown`;
  };
  for (const name of ["input", "change"]) byId("controls").addEventListener(name, filter);
  byId("controls").addEventListener("submit", (event) => event.preventDefault());
  filter();
})();
