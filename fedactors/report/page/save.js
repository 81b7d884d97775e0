/* Figures as files: SVG for papers, CSV for further figures. */
"use strict";

fedactors.csv = (rows) => rows.map((row) => row.map((value) => {
  const said = value === null || value === undefined || Number.isNaN(value) ? "" : String(value);
  return /[",\r\n]/.test(said) ? `"${said.replaceAll('"', '""')}"` : said;
}).join(",")).join("\r\n") + "\r\n";

fedactors.download = (name, type, text) => {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([text], {type}));
  link.download = name;
  document.body.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(link.href), 60000);
};

/* A chart as the text of an SVG file. */
fedactors.svgOf = (view) => view.export("svg").ctx.get_serialized_svg(true);

/* The points of a chart as rows: a row for each, under heads; with a column "series" if it has several. `labels` are
   what columns of progress are called, units included. */
fedactors.rowsOf = (root, labels) => {
  const drawn = root.renderers.filter(({data_source: source}) => source), sources = [...new Set(drawn.map((one) => one.data_source))];
  const label = (axes, otherwise) => axes.find((axis) => axis.axis_label)?.axis_label || otherwise;
  const switched = (source) => source.tags.includes("switch");
  const called = (source, column) => column === "x" ? label(root.below, "x")
    : ["y", "top"].includes(column) ? label(root.left, column) : labels[column] ?? column.replaceAll("_", " ");
  const heads = [];
  for (const source of sources) {
    for (const column of source.columns()) {
      const hidden = (column === "x" && switched(source)) || ["ink", "color", "dash", "width"].includes(column);
      if (!hidden && !heads.includes(called(source, column))) heads.push(called(source, column));
    }
  }
  const several = sources.length > 1;
  const rows = [several ? ["series", ...heads] : heads];
  for (const source of sources) {
    const series = drawn.find((one) => one.data_source === source)?.name ?? "";
    const columns = new Map(source.columns().map((column) => [called(source, column), source.get_column(column)]));
    for (let k = 0; k < source.get_length(); k++) {
      const values = heads.map((head) => columns.get(head)?.[k] ?? "");
      rows.push(several ? [series, ...values] : values);
    }
  }
  return rows;
};
