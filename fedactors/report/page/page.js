/* What the page does: draws the charts, follows the theme, switches axes, saves figures, and gets ready for paper. */
"use strict";

(async () => {
  const page = document.documentElement;
  const {items, themes, progress, timeline: rows} = JSON.parse(document.getElementById("charts").textContent);
  const models = [], roots = new Map();
  const dark = matchMedia("(prefers-color-scheme: dark)");
  let paper = false, timeline = null;
  const isDark = () => !paper && (page.dataset.theme ? page.dataset.theme === "dark" : dark.matches);
  const theme = () => isDark() ? themes.dark : themes.light;
  const tagged = (tag) => models.filter((model) => model.tags.includes(tag));

  const recolor = (some = models) => {
    const now = theme(), tagged = (tag) => some.filter((model) => model.tags.includes(tag));
    for (const model of some) {
      if (/Axis$/.test(model.type)) {
        model.setv({axis_label_text_color: now.text, major_label_text_color: now.text});
      } else if (model.type === "Grid") {
        model.grid_line_color = model.grid_line_color == null ? null : now.grid;
      } else if (model.type === "ColorBar") {
        model.setv({major_label_text_color: now.text, major_tick_line_color: now.line});
      } else if (model.type === "Legend") {
        model.label_text_color = now.text;
      }
    }
    for (const model of tagged("ink")) model.line_color = now.ink;
    for (const model of tagged("muted")) model.line_color = now.text;
    timeline?.draw();
  };
  const setTheme = (name) => {
    if (name) page.dataset.theme = name; else delete page.dataset.theme;
    document.getElementById("theme").textContent = isDark() ? "light" : "dark";
    recolor();
  };
  const kept = (name) => {
    try { return name === undefined ? localStorage.getItem("fedactors-theme") : localStorage.setItem("fedactors-theme", name); } catch { return null; }
  };

  const tie = fedactors.tie(progress);
  let current = document.querySelector("input[name=axis]:checked");
  const axisKey = () => current?.value ?? "round";
  const axisScale = () => Number(current?.dataset.scale ?? 1);
  const tieCharts = (some) => {
    for (const range of some.filter(({tags}) => tags.includes("tied"))) {
      const [, key, scale, offset] = range.tags;
      const base = () => key === "chosen" ? axisScale() : scale;
      const member = {
        key: () => key === "chosen" ? axisKey() : key,
        get: () => [range.start, range.end].map((value) => (value - offset) * base()),
        set: (from, to) => range.setv({start: from / base() + offset, end: to / base() + offset}),
      };
      tie.members.push(member);
      range.change.connect(() => tie.changed(member));
    }
  };
  const tieTimeline = () => {
    if (timeline) {
      tie.members.push(timeline.member = {
        key: () => "virtual",
        get: () => [timeline.view.start, timeline.view.end].map((time) => time * timeline.second),
        set: (from, to) => timeline.set(from / timeline.second, to / timeline.second, false),
      });
    }
  };
  const limits = () => {
    const all = tagged("switch").flatMap((source) => [...source.get_column("x")]).filter(Number.isFinite);
    const low = all.reduce((a, b) => Math.min(a, b), Infinity), high = all.reduce((a, b) => Math.max(a, b), -Infinity);
    const pad = 0.01 * (high - low) || 0.5;
    return [low - pad, high + pad];
  };
  const against = (input) => {
    const before = axisKey(), ranges = tagged("tied").filter((range) => range.tags[1] === "chosen");
    const [start, end] = ranges.length ? [ranges[0].start, ranges[0].end].map((value) => value * axisScale()) : [0, 1];
    const whole = ranges.length > 0 && ranges[0].start <= limits()[0] + 1e-9 && ranges[0].end >= limits()[1] - 1e-9;
    current = input;
    for (const source of tagged("switch")) {
      const x = source.get_column(input.value);
      if (x != null) source.data = {...Object.fromEntries(source.columns().map((c) => [c, source.get_column(c)])), x};
    }
    for (const axis of tagged("progress")) axis.axis_label = input.dataset.label;
    const [low, high] = limits();
    const from = whole ? null : tie.convert(start, before, axisKey()), to = whole ? null : tie.convert(end, before, axisKey());
    for (const range of ranges) {
      range.setv({bounds: null, start: from === null ? low : from / axisScale(), end: to === null ? high : to / axisScale()});
    }
  };
  const everything = () => {
    const [start, end] = limits(), range = tagged("tied").find((one) => one.tags[1] === "chosen");
    if (range) range.setv({start, end}); else timeline?.zoom("all");
  };

  const labels = Object.fromEntries(
    [...document.querySelectorAll("input[name=axis]")].map(({value, dataset}) => [value, dataset.label]));
  const viewOf = (key) => Bokeh.index.get_by_id(roots.get(key).id);
  const svg = (key) => key === "timeline" ? timeline.svg() : fedactors.svgOf(viewOf(key));
  const table = (key) => key === "timeline" ? timeline.csv() : fedactors.rowsOf(roots.get(key), labels);
  fedactors.svg = svg;
  fedactors.table = table;
  const name = (key, ending) => `${document.title.split(" · ")[0].replace(/[^\w.-]+/g, "-")}-${key}.${ending}`;
  const save = (key, kind) => !keys().includes(key) ? null : kind === "svg"
    ? fedactors.download(name(key, "svg"), "image/svg+xml", svg(key))
    : fedactors.download(name(key, "csv"), "text/csv", fedactors.csv(table(key)));

  const keys = () => [...roots.keys(), ...(timeline ? ["timeline"] : [])];
  const fit = () => {
    for (const view of [...roots.keys()].map(viewOf)) {
      view.compute_layout();
      view.paint();  // at once, since a legend has lost its samples of lines when their colours change
    }
  };
  const toPaper = () => {
    if (paper) return;
    paper = true;
    page.classList.add("on-paper");
    recolor();
    fit();
    for (const key of keys()) {
      const drawing = document.createElement("div");
      drawing.className = "paper";
      drawing.innerHTML = svg(key);
      const [{width, height}] = [drawing.firstElementChild.getBBox ? drawing.firstElementChild.attributes : {}].map((found) => ({
        width: found.width.value, height: found.height.value}));
      drawing.firstElementChild.setAttribute("viewBox", `0 0 ${width} ${height}`);
      drawing.firstElementChild.removeAttribute("height");
      drawing.firstElementChild.setAttribute("width", "100%");
      document.getElementById(key).after(drawing);
    }
  };
  const toScreen = () => {
    for (const drawing of document.querySelectorAll(".paper")) drawing.remove();
    paper = false;
    page.classList.remove("on-paper");
    recolor();
    fit();
  };

  const listen = () => {
    dark.addEventListener("change", () => setTheme(page.dataset.theme));
    document.getElementById("theme").addEventListener("click", () => {
      setTheme(isDark() ? "light" : "dark");
      kept(page.dataset.theme);
    });
    document.getElementById("print").addEventListener("click", () => window.print());
    addEventListener("beforeprint", toPaper);
    addEventListener("afterprint", toScreen);
    for (const input of document.querySelectorAll("input[name=axis]")) {
      input.addEventListener("change", () => tie.quietly(() => against(input)));
    }
    for (const button of document.querySelectorAll("button[data-save]")) {
      button.addEventListener("click", () => save(button.dataset.of, button.dataset.save));
    }
    for (const row of document.querySelectorAll("tbody tr")) {
      row.addEventListener("pointerenter", () => standOut(row, true));
      row.addEventListener("pointerleave", () => standOut(row, false));
    }
    for (const canvas of document.querySelectorAll(".canvas:not(#timeline)")) canvas.addEventListener("dblclick", everything);
  };

  /* A row of a table of runs or variants, when pointed at, makes its lines stand out. */
  const standOut = (row, out) => {
    const name = row.cells[0]?.textContent.trim(), lines = models.filter((model) => model.type === "GlyphRenderer" && model.name);
    if (!lines.some((line) => line.name === name)) return;
    for (const {name: other, glyph} of lines) {
      const alpha = out && other !== name ? 0.1 : 1;
      if (glyph.type === "Line") glyph.setv({line_alpha: alpha});
    }
  };

  const first = kept();
  if (first === "dark" || first === "light") page.dataset.theme = first;
  Bokeh.set_log_level("error");
  const embed = async (item) => {
    await Bokeh.embed.embed_item(item);
    const [root] = Bokeh.documents.at(-1).roots(), fresh = [...root.references()];
    roots.set(item.target_id, root);
    models.push(...fresh);
    recolor(fresh);
    tieCharts(fresh);
  };
  const near = (item) => document.getElementById(item.target_id).getBoundingClientRect().top < 2 * innerHeight;
  const atOnce = items.filter(near), later = items.filter((item) => !near(item));
  for (const item of atOnce) await embed(item);
  if (rows) {
    const frame = document.getElementById("timeline");
    timeline = fedactors.shown = await fedactors.timeline(frame, rows, theme, () => timeline?.member && tie.changed(timeline.member));
    fedactors.controls(frame, timeline);
  }
  tieTimeline();
  setTheme(page.dataset.theme);
  if (current) tie.quietly(() => against(current));
  listen();
  performance.mark("usable");
  for (const item of later) {
    await new Promise((next) => setTimeout(next));  // what the reader does comes first
    await embed(item);
  }
  if (current && later.length) tie.quietly(() => against(current));
  for (const drawn of Bokeh.documents) {
    if (!drawn.is_idle) await new Promise((done) => drawn.idle.connect(done));
  }
  performance.mark("drawn");
  page.dataset.charts = String(keys().length);
})().catch((error) => {
  document.documentElement.dataset.failed = String(error);
  const said = document.createElement("p");
  said.className = "warning";
  said.textContent = `The charts could not be drawn (${error}). They need a browser of 2023 or later.`;
  document.getElementById("main").prepend(said);
  throw error;
});
