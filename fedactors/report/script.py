"""What the page does: draws the charts, follows the theme, switches axes, moves the timeline."""

from __future__ import annotations

SCRIPT = r"""
(async () => {
  "use strict";
  const page = document.documentElement;
  const {items, themes} = JSON.parse(document.getElementById("charts").textContent);
  const models = [];
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const named = (name) => models.find((model) => model.name === name);
  const tagged = (tag) => models.filter((model) => model.tags.includes(tag));

  const recolor = () => {
    const theme = dark.matches ? themes.dark : themes.light;
    for (const model of models) {
      if (/Axis$/.test(model.type)) {
        model.setv({axis_label_text_color: theme.text, major_label_text_color: theme.text});
      } else if (model.type === "Grid") {
        model.grid_line_color = model.grid_line_color == null ? null : theme.grid;
      } else if (model.type === "Legend") {
        model.label_text_color = theme.text;
      }
    }
    for (const model of tagged("ink")) model.line_color = theme.ink;
    for (const model of tagged("muted")) model.line_color = theme.text;
    for (const model of tagged("band")) model.fill_color = theme.grid;
    for (const model of tagged("pause")) model.setv({fill_color: theme.page, hatch_color: theme.text});
    for (const model of tagged("rule")) model.line_color = theme.line;
  };

  const against = (input) => {
    for (const source of tagged("switch")) {
      const x = source.get_column(input.value);
      if (x != null) source.data = {...Object.fromEntries(source.columns().map((c) => [c, source.get_column(c)])), x};
    }
    for (const axis of tagged("progress")) axis.axis_label = input.dataset.label;
  };

  const limits = () => ({view: named("window"), all: named("overview")});
  const place = (start, end) => {
    const {view, all} = limits();
    const length = Math.min(end - start, all.x_range.end - all.x_range.start);
    start = Math.max(all.x_range.start, Math.min(start, all.x_range.end - length));
    view.setv({start, end: start + length});
  };
  const move = (share) => {
    const {view} = limits(), by = share * (view.end - view.start);
    place(view.start + by, view.end + by);
  };
  const zoom = (factor) => {
    const {view, all} = limits();
    if (factor === "all") return place(all.x_range.start, all.x_range.end);
    const middle = (view.start + view.end) / 2, half = factor * (view.end - view.start) / 2;
    place(middle - half, middle + half);
  };
  const keys = {
    ArrowLeft: () => move(-0.25), ArrowRight: () => move(0.25),
    "+": () => zoom(0.5), "=": () => zoom(0.5), "-": () => zoom(2), "0": () => zoom("all"),
  };

  const listen = () => {
    dark.addEventListener("change", recolor);
    for (const input of document.querySelectorAll("input[name=axis]")) {
      input.addEventListener("change", () => against(input));
      if (input.checked) against(input);
    }
    for (const button of document.querySelectorAll("button[data-move]")) {
      button.addEventListener("click", () => move(Number(button.dataset.move)));
    }
    for (const button of document.querySelectorAll("button[data-zoom]")) {
      button.addEventListener("click", () => zoom(button.dataset.zoom === "all" ? "all" : Number(button.dataset.zoom)));
    }
    document.getElementById("timeline")?.addEventListener("keydown", (event) => {
      const act = event.ctrlKey || event.metaKey || event.altKey ? undefined : keys[event.key];
      if (act) { event.preventDefault(); act(); }
    });
  };

  Bokeh.set_log_level("error");
  for (const item of items) {
    await Bokeh.embed.embed_item(item);
    for (const root of Bokeh.documents.at(-1).roots()) models.push(...root.references());
  }
  recolor();
  listen();
  for (const drawn of Bokeh.documents) {
    if (!drawn.is_idle) await new Promise((done) => drawn.idle.connect(done));
  }
  page.dataset.charts = String(items.length);
})().catch((error) => {
  document.documentElement.dataset.failed = String(error);
  throw error;
});
"""
