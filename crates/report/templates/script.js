"use strict";
(() => {
  const root = document.documentElement;
  const button = document.getElementById("theme");
  const prefersDark = window.matchMedia("(prefers-color-scheme: dark)");
  const isDark = () => (root.dataset.theme || (prefersDark.matches ? "dark" : "light")) === "dark";
  const name = () => { button.textContent = isDark() ? "Light" : "Dark"; };
  const asked = location.hash.slice(1);
  if (asked === "dark" || asked === "light") root.dataset.theme = asked;
  button.hidden = false;
  button.addEventListener("click", () => { root.dataset.theme = isDark() ? "light" : "dark"; name(); });
  prefersDark.addEventListener("change", name);
  name();
  window.addEventListener("beforeprint", () => document.querySelectorAll("details").forEach((d) => { d.open = true; }));

  const three = (v) => String(Number(v.toPrecision(3)));
  const scaled = (v, unit) => {
    for (const [step, letter] of [[1e9, "G"], [1e6, "M"], [1e3, "k"]]) if (v >= step * 0.9995) return three(v / step) + " " + letter + unit;
    return three(v) + " " + unit;
  };
  const write = (v, is) => {
    if (is === "share") return three(v * 100) + " %";
    if (is === "octets" || is === "bit/s") return scaled(v, is === "octets" ? "B" : is);
    if (is === "plain") return three(v);
    if (is === "number") return Math.round(v).toLocaleString("en").replace(/,/g, "\u202f");
    if (v < 999.5) return three(v) + " ns";
    if (v < 999.5e3) return three(v / 1e3) + " µs";
    if (v < 999.5e6) return three(v / 1e6) + " ms";
    return three(v / 1e9) + " s";
  };
  const value = (axis, px) => {
    const share = (px - axis.px[0]) / (axis.px[1] - axis.px[0]);
    const [low, high] = axis.value;
    return axis.log ? low * Math.pow(high / low, share) : low + share * (high - low);
  };
  const points = (path) => {
    if (!path.points) {
      const numbers = path.getAttribute("d").match(/-?\d+(\.\d+)?/g).map(Number);
      path.points = [];
      for (let i = 0; i + 1 < numbers.length; i += 2) path.points.push([numbers[i], numbers[i + 1]]);
    }
    return path.points;
  };

  const tip = document.getElementById("tip");
  let cross = null;
  const leave = () => { tip.hidden = true; if (cross) { cross.remove(); cross = null; } };
  const move = (event) => {
    const svg = event.currentTarget;
    const at = new DOMPoint(event.clientX, event.clientY).matrixTransform(svg.getScreenCTM().inverse());
    const axes = svg.axes || (svg.axes = JSON.parse(svg.querySelector(".axes").dataset.axes));
    leave();
    if (at.x < axes.x.px[0] || at.x > axes.x.px[1]) return;
    let best = null;
    for (const path of svg.querySelectorAll("path[data-label]")) {
      for (const point of points(path)) {
        const far = Math.hypot(point[0] - at.x, (point[1] - at.y) * 0.5);
        if (!best || far < best.far) best = { far, point, label: path.dataset.label };
      }
    }
    if (!best || best.far > 60) return;
    cross = document.createElementNS("http://www.w3.org/2000/svg", "line");
    cross.setAttribute("class", "cross");
    for (const [key, v] of [["x1", best.point[0]], ["x2", best.point[0]], ["y1", axes.y.px[1]], ["y2", axes.y.px[0]]]) cross.setAttribute(key, v);
    svg.appendChild(cross);
    const x = write(value(axes.x, best.point[0]), axes.x.is);
    const y = write(value(axes.y, best.point[1]), axes.y.is);
    const plain = (axis) => (axes.words && axis.is === "number" ? "plain" : axis.is);
    tip.textContent = axes.words
      ? `${best.label}\n${axes.words[0]}: ${write(value(axes.x, best.point[0]), plain(axes.x))}\n${axes.words[1]}: ${write(value(axes.y, best.point[1]), plain(axes.y))}`
      : axes.y.is === "share" ? `${best.label}\n${y} take ${x} or longer` : `${best.label}\nmessage ${x}: gap of ${y}`;
    tip.hidden = false;
    tip.style.left = Math.min(event.clientX + 14, window.innerWidth - tip.offsetWidth - 8) + "px";
    tip.style.top = Math.min(event.clientY + 14, window.innerHeight - tip.offsetHeight - 8) + "px";
  };
  for (const marker of document.querySelectorAll("svg.chart > .axes")) {
    marker.parentNode.addEventListener("pointermove", move);
    marker.parentNode.addEventListener("pointerleave", leave);
  }

  for (const figure of document.querySelectorAll(".grid > figure")) {
    const enlarge = document.createElement("button");
    enlarge.type = "button";
    enlarge.className = "enlarge";
    enlarge.textContent = "Enlarge";
    enlarge.addEventListener("click", () => { enlarge.textContent = figure.classList.toggle("enlarged") ? "Reduce" : "Enlarge"; });
    figure.appendChild(enlarge);
  }
})();
