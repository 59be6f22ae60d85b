"use strict";
// The page reads without this. With it, tables can be sorted, long ones come a page at a time, and marks say what they are.
(() => {
  const number = /[-−]?\d[\d,]*(\.\d+)?(e[-+]?\d+)?/i;

  function first(cell) {
    for (const node of cell.childNodes) {
      const text = node.textContent.trim();
      if (text && node.nodeName !== "SMALL") return text;
    }
    return "";
  }

  function value(cell, named) {
    const text = first(cell);
    if (named) return text;
    const found = number.exec(text);
    return found ? Number(found[0].replace("−", "-").replaceAll(",", "")) : text;
  }

  function compare(a, b, sign) {
    const numbers = [typeof a === "number", typeof b === "number"];
    if (numbers[0] && numbers[1]) return sign * (a - b);
    if (numbers[0] !== numbers[1]) return numbers[0] ? -1 : 1; // what is not known comes last, whichever way
    return sign * String(a).localeCompare(String(b), "en", { numeric: true });
  }

  function button(text, act) {
    const made = document.createElement("button");
    made.type = "button";
    made.textContent = text;
    made.addEventListener("click", act);
    return made;
  }

  function sortable(table, show) {
    const body = table.tBodies[0];
    const heads = [...table.tHead.rows[0].cells];
    heads.forEach((head, place) => {
      if ("drawing" in head.dataset) return;
      const name = head.textContent;
      head.textContent = "";
      head.append(button(name, () => {
        const down = head.getAttribute("aria-sort") === "ascending";
        heads.forEach((other) => other.removeAttribute("aria-sort"));
        head.setAttribute("aria-sort", down ? "descending" : "ascending");
        const named = head.classList.contains("name");
        const rows = [...body.rows].map((row) => [value(row.cells[place], named), row]);
        rows.sort((a, b) => compare(a[0], b[0], down ? -1 : 1));
        body.append(...rows.map((row) => row[1]));
        show();
      }));
    });
  }

  function paged(table) {
    const size = Number(table.dataset.page);
    const body = table.tBodies[0];
    if (!size || body.rows.length <= size) return () => {};
    let from = 0;
    const told = document.createElement("span");
    told.setAttribute("role", "status");
    const move = (by) => () => { from += by * size; show(); };
    const back = button("Previous", move(-1));
    const on = button("Next", move(1));
    function show() {
      const rows = [...body.rows];
      from = Math.min(Math.max(from, 0), size * Math.floor((rows.length - 1) / size));
      rows.forEach((row, place) => { row.hidden = place < from || place >= from + size; });
      told.textContent = `${from + 1} to ${Math.min(from + size, rows.length)} of ${rows.length}`;
      back.disabled = from === 0;
      on.disabled = from + size >= rows.length;
    }
    const bar = document.createElement("p");
    bar.className = "pager";
    bar.append(back, on, told);
    table.parentElement.classList.remove("tall");
    table.parentElement.before(bar);
    show();
    return () => { from = 0; show(); };
  }

  document.querySelectorAll(".sheet table").forEach((table) => sortable(table, paged(table)));

  const tip = document.createElement("div");
  tip.id = "tip";
  tip.hidden = true;
  document.body.append(tip);
  const reach = 14; // pixels: a fingertip is no needle
  document.querySelectorAll(".panel svg, svg.line").forEach((svg) => {
    const marks = [...svg.querySelectorAll("title")].map((title) => {
      const mark = title.parentNode;
      mark.dataset.tip = title.textContent;
      title.remove(); // or the browser would show it too
      return mark;
    });
    function near(event) {
      const hit = event.target.closest("[data-tip]");
      if (hit) return hit;
      let best = null;
      let least = reach;
      for (const mark of marks) {
        const box = mark.getBoundingClientRect();
        const x = Math.max(box.left - event.clientX, 0, event.clientX - box.right);
        const y = Math.max(box.top - event.clientY, 0, event.clientY - box.bottom);
        const away = Math.hypot(x, y);
        if (away < least) { least = away; best = mark; }
      }
      return best;
    }
    function tell(event) {
      const mark = near(event);
      tip.hidden = mark === null;
      if (mark === null) return;
      tip.textContent = mark.dataset.tip;
      const box = mark.getBoundingClientRect();
      const left = Math.min(Math.max(box.left + box.width / 2 - tip.offsetWidth / 2, 6),
        document.documentElement.clientWidth - tip.offsetWidth - 6);
      const above = box.top - tip.offsetHeight - 8;
      tip.style.left = `${left + window.scrollX}px`;
      tip.style.top = `${(above > 4 ? above : box.bottom + 8) + window.scrollY}px`;
    }
    if (!marks.length) return;
    svg.addEventListener("pointermove", tell);
    svg.addEventListener("pointerdown", tell);
    svg.addEventListener("pointerleave", (event) => { if (event.pointerType === "mouse") tip.hidden = true; });
  });
  document.addEventListener("keydown", (event) => { if (event.key === "Escape") tip.hidden = true; });
  document.addEventListener("pointerdown", (event) => { if (!event.target.closest("svg")) tip.hidden = true; });
})();
