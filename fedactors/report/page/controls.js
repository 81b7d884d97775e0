/* What pointer, wheel and keys do with the timeline. */
"use strict";

fedactors.controls = (root, timeline) => {
  const {view, data, scroll, strip, canvas, tip, tool, set, shift, zoom, draw} = timeline;
  const local = (event, of) => { const box = of.getBoundingClientRect(); return [event.clientX - box.left, event.clientY - box.top]; };
  const dragged = (element, begin, drag) => {
    element.addEventListener("pointerdown", (event) => {
      if (event.button !== 0 || event.pointerType === "touch") return;
      const from = begin(event), [x0, y0] = [event.clientX, event.clientY];
      const move = (now) => drag(from, now.clientX - x0, now.clientY - y0);
      const end = () => { removeEventListener("pointermove", move); removeEventListener("pointerup", end); };
      addEventListener("pointermove", move);
      addEventListener("pointerup", end);
      event.preventDefault();
      root.focus({preventScroll: true});
    });
  };
  dragged(canvas, () => ({start: view.start, end: view.end, top: scroll.scrollTop}), (from, dx, dy) => {
    const by = dx / timeline.frame().width * (from.end - from.start);
    scroll.scrollTop = from.top - dy;
    set(from.start - by, from.end - by);
    hide();
  });
  dragged(strip, (event) => {
    const box = timeline.frame(), x = local(event, strip)[0], per = data.end / box.width;
    const edges = [view.start, view.end].map((time) => box.x + time / per);
    const near = edges.findIndex((edge) => Math.abs(edge - x) < 6);
    if (near < 0 && (x < edges[0] || x > edges[1])) {
      const middle = (x - box.x) * per, half = (view.end - view.start) / 2;
      set(middle - half, middle + half);
    }
    return {near, per, start: view.start, end: view.end};
  }, ({near, per, start, end}, dx) => {
    const by = dx * per;
    set(near === 1 ? start : Math.min(start + by, near === 0 ? end - 10 : Infinity), near === 0 ? end : Math.max(end + by, near === 1 ? start + 10 : 0));
  });
  scroll.addEventListener("scroll", draw);
  scroll.addEventListener("wheel", (event) => {
    if (!event.ctrlKey && !event.metaKey) return;
    event.preventDefault();
    const {x, width} = timeline.frame();
    zoom(2 ** (event.deltaY / 200), Math.max(0, Math.min(1, (local(event, canvas)[0] - x) / width)));
  }, {passive: false});
  canvas.addEventListener("dblclick", () => zoom("all"));

  const hide = () => { tip.hidden = true; };
  canvas.addEventListener("pointerleave", hide);
  canvas.addEventListener("pointermove", (event) => {
    const [x, y] = local(event, canvas), found = event.buttons ? null : timeline.at(x, y);
    if (!found) return hide();
    tip.replaceChildren(...timeline.words(found).map((line) => Object.assign(document.createElement("div"), {textContent: line})));
    tip.hidden = false;
    const [left, top] = local(event, root);
    tip.style.left = `${Math.max(0, Math.min(left + 14, root.clientWidth - tip.offsetWidth - 4))}px`;
    tip.style.top = `${top + 16}px`;
  });

  const keys = {
    ArrowLeft: () => shift(-0.25), ArrowRight: () => shift(0.25),
    "+": () => zoom(0.5), "=": () => zoom(0.5), "-": () => zoom(2), "0": () => zoom("all"),
    ArrowUp: () => { scroll.scrollTop -= 3 * timeline.frame().row; }, ArrowDown: () => { scroll.scrollTop += 3 * timeline.frame().row; },
    PageUp: () => { scroll.scrollTop -= scroll.clientHeight; }, PageDown: () => { scroll.scrollTop += scroll.clientHeight; },
    Home: () => { scroll.scrollTop = 0; }, End: () => { scroll.scrollTop = scroll.scrollHeight; },
  };
  root.addEventListener("keydown", (event) => {
    const act = event.ctrlKey || event.metaKey || event.altKey ? undefined : keys[event.key];
    if (act) { event.preventDefault(); act(); }
  });
  for (const button of root.closest("figure").querySelectorAll("button[data-move]")) {
    button.addEventListener("click", () => shift(Number(button.dataset.move)));
  }
  for (const button of root.closest("figure").querySelectorAll("button[data-zoom]")) {
    button.addEventListener("click", () => zoom(button.dataset.zoom === "all" ? "all" : Number(button.dataset.zoom)));
  }
  for (const [name, event] of [["find", "input"], ["order", "change"], ["size", "change"]]) {
    tool(name).addEventListener(event, timeline.list);
  }
  new ResizeObserver(draw).observe(root);
};
