// Moves and zooms the picture, searches it, and shows what is known of a box. `page.css` has the looks.
"use strict";
(() => {
  const { boxes, links, size } = JSON.parse(document.getElementById("graph").textContent);
  const byId = (id) => document.getElementById(id);
  const root = document.documentElement, picture = byId("picture"), view = byId("view"), details = byId("details");
  const elements = [...view.querySelectorAll(".box")];
  const lines = [...view.querySelectorAll(".link")];
  const labels = [...view.querySelectorAll(".shape")];
  const into = boxes.map(() => []), outOf = boxes.map(() => []);
  links.forEach(([from, to], k) => { into[to].push(k); outOf[from].push(k); });

  // Where the picture stands: screen = at + scale * point.
  let scale = 1, x = 0, y = 0;
  const room = () => picture.getBoundingClientRect();
  const show = () => {
    view.setAttribute("transform", `translate(${x} ${y}) scale(${scale})`);
    byId("scale").textContent = `${Math.round(scale * 100)}%`;
  };
  const zoom = (factor, px, py) => {
    const next = Math.min(Math.max(scale * factor, Math.min(0.02, whole())), 6);
    x = px - (px - x) * next / scale;
    y = py - (py - y) * next / scale;
    scale = next;
    show();
  };
  const middle = (factor) => { const { width, height } = room(); zoom(factor, width / 2, height / 2); };
  const place = (next) => {
    const { width, height } = room();
    scale = next;
    y = Math.max((height - size[1] * scale) / 2, 22);
    // Where not everything fits, the middle of what lies in the part that does.
    const seen = boxes.filter((box) => box.at[1] * scale + y < height).map((box) => box.at[0]);
    const at = size[0] * scale <= width ? size[0] / 2 : seen.reduce((sum, one) => sum + one, 0) / seen.length;
    x = width / 2 - at * scale;
    show();
  };
  const whole = () => {
    const { width, height } = room();
    return Math.min((width - 48) / size[0], (height - 44) / size[1], 1.4);
  };
  const centre = (k) => {
    const { width, height } = room();
    const [bx, by] = boxes[k].at;
    if (scale < 0.6) scale = 0.9;
    x = (details.hidden ? width : width - 350) / 2 - bx * scale;
    y = height / 2 - by * scale;
    show();
  };

  // Everything that leads to a box or comes from it.
  const lineage = (k) => {
    const on = new Set([k]), used = new Set();
    for (const [lists, end] of [[into, 0], [outOf, 1]]) {
      const stack = [k], seen = new Set(stack);
      while (stack.length) {
        for (const link of lists[stack.pop()]) {
          used.add(link);
          const next = links[link][end];
          if (!seen.has(next)) { seen.add(next); on.add(next); stack.push(next); }
        }
      }
    }
    return [on, used];
  };

  const make = (tag, text, parent, name) => {
    const element = document.createElement(tag);
    if (text !== undefined) element.textContent = text;
    if (name) element.className = name;
    parent.append(element);
    return element;
  };
  const table = (title, rows) => {
    if (!rows.length) return;
    make("h3", title, details);
    const body = make("table", undefined, details);
    for (const row of rows) {
      const line = make("tr", undefined, body);
      row.forEach((cell) => make("td", cell, line));
    }
  };
  const neighbours = (title, entries) => {
    if (!entries.length) return;
    make("h3", title, details);
    for (const [k, text] of entries.slice(0, 40)) {
      const button = make("button", boxes[k].title + " ", details, "go");
      make("small", text, button);
      button.addEventListener("click", () => { select(k); centre(k); });
    }
    if (entries.length > 40) make("p", `and ${entries.length - 40} more`, details, "sub");
  };
  let selected = null;
  const select = (k) => {
    selected = k;
    details.hidden = k === null;
    details.replaceChildren();
    view.classList.toggle("dim", k !== null);
    const [on, used] = k === null ? [new Set(), new Set()] : lineage(k);
    elements.forEach((element, i) => {
      element.classList.toggle("on", on.has(i));
      element.classList.toggle("selected", i === k);
    });
    lines.forEach((element, i) => {
      element.classList.toggle("on", used.has(i));
      element.classList.toggle("direct", k !== null && (links[i][0] === k || links[i][1] === k));
    });
    labels.forEach((element) => element.classList.toggle("on", used.has(Number(element.dataset.link))));
    if (k === null) return;
    const box = boxes[k];
    const close = make("button", "×", details, "close");
    close.setAttribute("aria-label", "Close");
    close.addEventListener("click", () => select(null));
    make("h2", box.title, details);
    const names = box.names.filter((name) => !box.title.split(" = ").includes(name));
    make("p", [box.kind, ...names, box.note, box.entry].filter(Boolean).join(" · "), details, "sub");
    table("Value", box.values.map((value, i) => [box.values.length > 1 ? `output ${i}` : "shape and dtype", value]));
    const norms = box.norms.flatMap((norm, i) =>
      norm === null ? [] : [[box.norms.length > 1 ? `output ${i}` : "norm", norm]]);
    table("Gradient", norms);
    const kept = box.saved.map(([name, value, bytes]) => [`${name}: ${value}`, bytes]);
    if (box.location) {
      make("h3", "Recorded at", details);
      make("p", box.location, details, "location");
    }
    if (box.freed) kept.push(["freed by backward", ""]);
    else if (box.bytes && kept.length !== 1) kept.push(["together", box.bytes]);
    table("Kept for backward", kept);
    neighbours("From", into[k].map((link) => [links[link][0], links[link][2]]));
    neighbours("To", outOf[k].map((link) => [links[link][1], links[link][2]]));
  };

  // Search: every word must occur; "2x3" and "(2, 3)" are the shape 2 × 3.
  const plain = (text) => text.toLowerCase().replace(/[()[\]]/g, "").replace(/(\d)\s*[x×,]\s*(?=\d)/g, "$1×");
  const words = boxes.map((box) =>
    plain([box.title, box.kind, box.entry, box.note, box.location, ...box.names, ...box.values].join(" ")));
  const field = byId("search");
  let matches = [], current = -1;
  const turn = (step) => {
    if (!matches.length) return;
    elements[matches[current]]?.classList.remove("current");
    current = (current + step + matches.length) % matches.length;
    elements[matches[current]].classList.add("current");
    byId("found").textContent = `${current + 1} of ${matches.length}`;
    centre(matches[current]);
  };
  const search = () => {
    elements.forEach((element) => element.classList.remove("current", "on"));
    const text = plain(field.value.trim());
    select(null);
    matches = [];
    current = -1;
    byId("found").textContent = "";
    if (!text) return;
    const wanted = text.split(/\s+/);
    matches = words.flatMap((have, i) => (wanted.every((word) => have.includes(word)) ? [i] : []));
    matches.forEach((i) => elements[i].classList.add("on"));
    view.classList.add("dim");
    if (matches.length) turn(1);
    else byId("found").textContent = "nothing found";
  };
  field.addEventListener("input", search);
  field.addEventListener("keydown", (event) => {
    if (event.key === "Enter") turn(event.shiftKey ? -1 : 1);
    if (event.key === "Escape") { field.value = ""; search(); field.blur(); }
    event.stopPropagation();
  });

  // Pointers: one moves, two pinch; a press that did not move is a click.
  const fingers = new Map();
  let moved = 0;
  picture.addEventListener("wheel", (event) => {
    event.preventDefault();
    const { left, top } = room();
    const lines = event.deltaMode === 1 ? 16 : 1;
    zoom(Math.exp(-event.deltaY * lines * (event.ctrlKey ? 0.01 : 0.0016)), event.clientX - left, event.clientY - top);
  }, { passive: false });
  picture.addEventListener("pointerdown", (event) => {
    if (event.button) return;
    if (!fingers.size) moved = 0;
    fingers.set(event.pointerId, [event.clientX, event.clientY]);
  });
  picture.addEventListener("pointermove", (event) => {
    const before = fingers.get(event.pointerId);
    if (!before) return;
    const now = [event.clientX, event.clientY];
    moved += Math.hypot(now[0] - before[0], now[1] - before[1]);
    if (moved < 4) return;
    if (!picture.hasPointerCapture(event.pointerId)) picture.setPointerCapture(event.pointerId);
    picture.classList.add("moving");
    if (fingers.size === 2) {
      const other = [...fingers].find(([id]) => id !== event.pointerId)[1];
      const apart = (p) => Math.hypot(p[0] - other[0], p[1] - other[1]);
      const { left, top } = room();
      zoom(apart(now) / (apart(before) || 1), (now[0] + other[0]) / 2 - left, (now[1] + other[1]) / 2 - top);
    } else {
      x += now[0] - before[0];
      y += now[1] - before[1];
      show();
    }
    fingers.set(event.pointerId, now);
  });
  const up = (event) => {
    fingers.delete(event.pointerId);
    if (!fingers.size) picture.classList.remove("moving");
  };
  picture.addEventListener("pointerup", up);
  picture.addEventListener("pointercancel", up);
  picture.addEventListener("click", (event) => {
    if (moved >= 4) return;
    const box = event.target.closest(".box");
    select(box ? Number(box.dataset.box) : null);
  });
  elements.forEach((element, i) => {
    element.setAttribute("tabindex", "0");
    element.setAttribute("role", "button");
    element.setAttribute("aria-label", [boxes[i].title, ...boxes[i].values].join(", "));
    element.addEventListener("keydown", (event) => {
      if (event.key === "Enter" || event.key === " ") { event.preventDefault(); select(i); }
    });
  });

  byId("in").addEventListener("click", () => middle(1.25));
  byId("out").addEventListener("click", () => middle(0.8));
  byId("scale").addEventListener("click", () => middle(1 / scale));
  byId("fit").addEventListener("click", () => place(whole()));
  byId("theme").addEventListener("click", () => {
    root.dataset.theme = root.dataset.theme === "dark" ? "light" : "dark";
  });
  const keys = {
    "/": () => field.focus(), f: () => place(whole()), "+": () => middle(1.25), "=": () => middle(1.25),
    "-": () => middle(0.8), 0: () => middle(1 / scale), Escape: () => { field.value = ""; search(); },
    ArrowUp: () => { y += 60; show(); }, ArrowDown: () => { y -= 60; show(); },
    ArrowLeft: () => { x += 60; show(); }, ArrowRight: () => { x -= 60; show(); },
  };
  document.addEventListener("keydown", (event) => {
    const action = event.ctrlKey || event.metaKey || event.altKey ? undefined : keys[event.key];
    if (action) { event.preventDefault(); action(); }
  });
  root.dataset.theme = matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light";
  // All of it where that is legible, else its upper part.
  place(Math.max(whole(), 0.8));
})();
