/* The timeline: rows of devices that scroll, a window of time that moves, and a strip of all rounds below. */
"use strict";

fedactors.MOST_SHAPES = 20000; // of an SVG; a drawing with more is an image in it
fedactors.SIZES = {tall: 18, low: 6, all: 0}; // pixels of a row; 0: as many as there is room for

fedactors.timeline = async (root, data, theme, moved) => {
  const model = await fedactors.readDevices(data);
  const {list: orders, asked, heard} = fedactors.orders(model, data);
  const part = (name) => root.querySelector(`[data-part="${name}"]`);
  const tools = root.closest("figure");
  const tool = (name) => tools.querySelector(`[data-tool="${name}"]`);
  const scroll = part("scroll"), canvas = part("rows"), axis = part("axis"), strip = part("strip"), tip = part("tip");
  const second = data.unit / 1000;
  const view = {start: 0, end: data.first || data.end, rows: [], order: orders[0], size: "tall"};
  let waiting = false;

  const left = () => root.clientWidth < 700 ? 64 : 128;
  const right = () => root.clientWidth < 700 ? 0 : 190;
  const room = () => Math.max(120, Math.min(620, 0.72 * innerHeight));
  const rowHeight = () => fedactors.SIZES[view.size] || Math.max(0.25, Math.min(18, room() / view.rows.length));
  const height = () => Math.max(18, Math.min(room(), Math.ceil(rowHeight() * view.rows.length)));
  const frame = () => ({
    x: left(), width: Math.max(40, root.clientWidth - left() - right()), height: height(), row: rowHeight(),
    top: scroll.scrollTop,
  });
  const place = (time, {x, width}) => x + width * (time - view.start) / (view.end - view.start);

  const bands = (pen, row, y, box) => {
    const {windows} = model;
    if (!windows || windows.known[row] < 0) return;
    const high = windows.starts[row + 1];
    for (let k = fedactors.after(windows.off, view.start, windows.starts[row], high); k < high && windows.on[k] < view.end; k++) {
      const from = Math.max(box.x, place(windows.on[k], box));
      pen.rect(from, y, Math.max(0.5, Math.min(box.x + box.width, place(windows.off[k], box)) - from), box.row, theme().grid);
    }
  };
  const trips = (pen, row, y, box) => {
    const {starts, began, loaded, computed, ended, outcome} = model.trips, end = box.x + box.width;
    const bar = (from, to, share, color, least) => {
      const x = Math.max(box.x, place(from, box)), width = Math.max(least, Math.min(end, place(to, box)) - x);
      const thick = box.row < 8 ? box.row : share * box.row;
      if (width > 0 && x < end) pen.rect(x, y + (box.row - thick) / 2, width, thick, color);
    };
    let last = -1, before = -1;
    for (let k = fedactors.after(ended, view.start, starts[row], starts[row + 1]); k < starts[row + 1] && began[k] < view.end; k++) {
      const pixel = Math.floor(place(ended[k], box)), {color} = data.outcomes[outcome[k]];
      if (pixel === last && outcome[k] === before) continue;
      [last, before] = [pixel, outcome[k]];
      if (place(ended[k], box) - place(began[k], box) < 3 || box.row < 8) {
        bar(began[k], ended[k], 0.82, color, 1);
        continue;
      }
      bar(began[k], loaded[k], 0.3, color, 0);
      bar(loaded[k], computed[k], 0.82, color, 0);
      bar(computed[k], ended[k], 0.3, color, 0);
      for (const [from, to] of fedactors.pauses(model.windows, row, Math.max(began[k], view.start), Math.min(ended[k], view.end))) {
        pen.hatch(place(from, box), y + 0.05 * box.row, place(to, box) - place(from, box), 0.9 * box.row, theme().page, theme().text);
      }
    }
  };
  const beside = (pen, row, y, box) => {
    if (box.row < 11) return;
    const middle = y + box.row / 2, name = data.groups[model.group[row]] ?? "";
    const shown = left() < 100 || !name ? "" : ` ${name.length > 11 ? `${name.slice(0, 10)}…` : name}`;
    pen.text(box.x - 8, middle, `${model.device[row]}${shown}`, theme().text, "right");
    if (!right()) return;
    let x = box.x + box.width + 10;
    model.counts.forEach((counts, code) => {
      const width = asked[row] ? 56 * counts[row] / asked[row] : 0;
      if (width) pen.rect(x, y + 0.25 * box.row, width, 0.5 * box.row, data.outcomes[code].color);
      x += width;
    });
    pen.text(box.x + box.width + 74, middle, view.order.said(row), theme().text);
  };
  const groups = (pen, box, first, last) => {
    for (let k = first, end; k < last; k = end) {
      const group = model.group[view.rows[k]];
      for (end = k + 1; end < last && model.group[view.rows[end]] === group;) end++;
      const name = data.groups[group] ?? "", tall = (end - k) * box.row;
      if (tall >= 14) pen.text(box.x - 8, (k + end) / 2 * box.row - box.top, name.slice(0, 16), theme().text, "right");
    }
  };
  const paintRows = (pen, box) => {
    const first = Math.floor(box.top / box.row), last = Math.min(view.rows.length, Math.ceil((box.top + box.height) / box.row));
    for (let k = first; k < last; k++) bands(pen, view.rows[k], k * box.row - box.top, box);
    for (let k = first; k < last; k++) trips(pen, view.rows[k], k * box.row - box.top, box);
    for (let k = first; k < last; k++) beside(pen, view.rows[k], k * box.row - box.top, box);
    if (box.row < 11) groups(pen, box, first, last);
    if (data.until !== null && data.until < view.end) {
      const x = Math.max(box.x, place(data.until, box));
      pen.rect(x, 0, 2, box.height, theme().line);
      if (box.x + box.width - x > 240) pen.text(x + 10, box.height / 2, "trips that begin later are not in this page", theme().text);
    }
    if (!view.rows.length) pen.text(box.x + box.width / 2, box.height / 2, "no device is found", theme().text, "center");
  };
  const paintAxis = (pen, box, y, from, to) => {
    const {step, found} = fedactors.ticks(from * second, to * second, Math.max(2, box.width / 110));
    for (const tick of found) {
      const x = box.x + box.width * (tick / second - from) / (to - from);
      pen.rect(x, y, 1, 5, theme().line);
      pen.text(x, y + 14, fedactors.clock(tick, step), theme().text, "center");
    }
  };
  const paintStrip = (pen, box) => {
    const {ends, counts} = data.strip, codes = Object.keys(counts), tall = 36;
    const totals = ends.map((_, k) => codes.reduce((sum, code) => sum + counts[code][k], 0)), most = Math.max(1, ...totals);
    ends.forEach((end, k) => {
      const from = box.x + box.width * (k ? ends[k - 1] : 0) / data.end, to = box.x + box.width * Math.min(1, end / data.end);
      let y = tall;
      for (const code of codes) {
        const part = tall * counts[code][k] / most;
        pen.rect(from, y -= part, Math.max(0.5, to - from), part, data.outcomes[code].color);
      }
    });
    const x = box.x + box.width * view.start / data.end, width = Math.max(3, box.width * (view.end - view.start) / data.end);
    for (const [a, b, w, h] of [[x, 0, width, 2], [x, tall - 1, width, 2], [x, 0, 2, tall], [x + width - 2, 0, 2, tall]]) {
      pen.rect(a, b, w, h, theme().ink);
    }
    paintAxis(pen, box, tall + 2, 0, data.end);
  };
  const paint = () => {
    waiting = false;
    const box = frame(), width = root.clientWidth;
    scroll.style.height = `${box.height}px`;
    part("space").style.height = `${Math.max(0, box.row * view.rows.length - box.height)}px`;
    paintRows(fedactors.canvasPen(canvas, scroll.clientWidth, box.height), box);
    paintAxis(fedactors.canvasPen(axis, width, 24), box, 0, view.start, view.end);
    paintStrip(fedactors.canvasPen(strip, width, 62), box);
  };
  const draw = () => { if (!waiting) { waiting = true; requestAnimationFrame(paint); } };

  const set = (start, end, tell = true) => {
    const length = Math.max(10, Math.min(end - start, data.end));
    view.start = Math.max(0, Math.min(start, data.end - length));
    view.end = view.start + length;
    draw();
    if (tell) moved();
  };
  const shift = (share) => set(view.start + share * (view.end - view.start), view.end + share * (view.end - view.start));
  const zoom = (factor, at = 0.5) => {
    if (factor === "all") return set(0, data.end);
    const middle = view.start + at * (view.end - view.start), length = factor * (view.end - view.start);
    set(middle - at * length, middle + (1 - at) * length);
  };
  const list = () => {
    const found = fedactors.search(tool("find").value, model, data, heard);
    view.order = orders.find(({key}) => key === tool("order").value) ?? orders[0];
    view.size = tool("size").value;
    view.rows = fedactors.ordered(found, view.order);
    scroll.scrollTop = 0;
    const all = model.device.length.toLocaleString("en");
    tool("found").textContent = found.length === model.device.length ? `${all} devices` : `${found.length.toLocaleString("en")} of ${all} devices`;
    draw();
  };
  const at = (x, y) => {
    const box = frame(), row = view.rows[Math.floor((y + box.top) / box.row)];
    if (row === undefined || y < 0 || y > box.height) return null;
    const time = view.start + (x - box.x) / box.width * (view.end - view.start), {starts, began, ended} = model.trips;
    const k = fedactors.after(ended, time, starts[row], starts[row + 1]);
    const inside = x >= box.x && x <= box.x + box.width;
    return {row, time, trip: inside && k < starts[row + 1] && began[k] <= time ? k : null};
  };
  const words = ({row, trip}) => {
    const name = `device ${model.device[row]}${data.groups.length ? `, ${data.groups[model.group[row]] ?? ""}` : ""}`;
    const sums = data.outcomes.flatMap(({name: outcome}, code) => model.counts[code][row] ? [`${outcome} ${model.counts[code][row]}`] : []);
    if (trip === null) return [name, asked[row] ? `asked ${asked[row]}: ${sums.join(", ")}` : "never asked", view.order.said(row)];
    const {version, outcome, steps, wanted, began, ended} = model.trips;
    const exact = (ended[trip] - began[trip]) * second < 20 ? 0.1 : 1;
    return [name, `round ${version[trip] + 1}: ${data.outcomes[outcome[trip]].name}, ${steps[trip]} of ${wanted[trip]} steps`,
      `${fedactors.clock(began[trip] * second, exact)} to ${fedactors.clock(ended[trip] * second, exact)}`];
  };
  /* The rows that a drawing of its own shows: no row is cut at its edge, as on the screen, where one scrolls. */
  const whole = () => {
    const box = frame(), count = Math.max(1, Math.floor(box.height / box.row + 1e-6));
    return {...box, height: count * box.row, top: Math.floor(box.top / box.row) * box.row, count: Math.min(count, view.rows.length)};
  };
  const svg = () => {
    const box = whole(), width = root.clientWidth;
    let pen = fedactors.svgPen(width, box.height + 24, theme().page);
    paintRows(pen, box);
    if (pen.size() > fedactors.MOST_SHAPES) {
      paint();
      pen = fedactors.svgPen(width, box.height + 24, theme().page);
      pen.image(0, 0, scroll.clientWidth, frame().height, canvas.toDataURL("image/png"));
    }
    pen.rect(0, box.height, width, 24, theme().page);
    paintAxis(pen, box, box.height, view.start, view.end);
    const all = model.device.length, said = `${box.count.toLocaleString("en")} of ${all.toLocaleString("en")} devices`;
    if (right() && box.count < all) pen.text(width, box.height + 14, said, theme().text, "right");
    return pen.done(theme().text);
  };
  const csv = () => {
    const {starts, version, began, loaded, computed, ended, outcome, steps, wanted} = model.trips;
    const lines = [["device", "group", "round", "outcome", "steps", "wanted", "started", "downloaded", "computed", "finished"]];
    for (const row of view.rows) {
      for (let k = starts[row]; k < starts[row + 1]; k++) {
        if (ended[k] < view.start || began[k] > view.end) continue;
        const times = [began, loaded, computed, ended].map((times) => +(times[k] * second).toFixed(3));
        lines.push([model.device[row], data.groups[model.group[row]] ?? "", version[k] + 1, data.outcomes[outcome[k]].name,
          steps[k], wanted[k], ...times]);
      }
    }
    return lines;
  };

  for (const {key, name} of orders) tool("order").add(new Option(name, key));
  const found = {model, view, data, frame, at, words, set, shift, zoom, draw, paint, list, svg, csv, tip, scroll, strip, canvas, tool, second};
  list();
  paint();
  return found;
};
