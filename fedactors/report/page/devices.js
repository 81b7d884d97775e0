/* The devices of a run, their trips and windows; which devices a search finds, and in which order they stand. */
"use strict";

fedactors.readDevices = async (data) => {
  const [people, trips, windows] = await Promise.all(
    [data.devices, data.trips, data.windows].map((part) => part && fedactors.unpack(part)));
  const device = fedactors.sums(people.device);
  const tripStarts = fedactors.starts(trips.trips);
  const opened = fedactors.sums(trips.opened);
  const version = fedactors.sums(trips.version, tripStarts);
  const count = version.length;
  const began = new Float64Array(count), loaded = new Float64Array(count);
  const computed = new Float64Array(count), ended = new Float64Array(count);
  for (let k = 0; k < count; k++) {
    began[k] = opened[version[k]] + trips.begin[k];
    loaded[k] = began[k] + trips.download[k];
    computed[k] = loaded[k] + trips.compute[k];
    ended[k] = computed[k] + trips.upload[k];
  }
  return {
    device, group: people.group, steps: people.steps, energy: people.energy,
    counts: data.outcomes.map((_, code) => people[`outcome${code}`] ?? new Int32Array(device.length)),
    trips: {...trips, starts: tripStarts, version, began, loaded, computed, ended},
    windows: windows && fedactors.readWindows(windows),
  };
};

fedactors.readWindows = ({windows, gap, length}) => {
  const starts = fedactors.starts(windows);
  const steps = new Int32Array(2 * gap.length);
  for (let k = 0; k < gap.length; k++) { steps[2 * k] = gap[k]; steps[2 * k + 1] = length[k]; }
  const edges = fedactors.sums(steps, starts.map((start) => 2 * start));
  const on = new Float64Array(gap.length), off = new Float64Array(gap.length);
  for (let k = 0; k < gap.length; k++) { on[k] = edges[2 * k]; off[k] = edges[2 * k + 1]; }
  return {known: windows, starts, on, off};
};

/* The times from `from` to `to` in which a device is off, as pairs; none if nothing is known of it. */
fedactors.pauses = (windows, row, from, to) => {
  const found = [];
  if (!windows || windows.known[row] < 1) return found;
  const high = windows.starts[row + 1];
  let at = fedactors.after(windows.off, from, windows.starts[row], high), reached = from;
  for (; at < high && windows.on[at] < to; at++) {
    if (windows.on[at] > reached) found.push([reached, windows.on[at]]);
    reached = windows.off[at];
  }
  if (reached < to) found.push([reached, to]);
  return found;
};

/* What rows can be ordered by: a name, a value for each row (highest first), and what stands beside a row. */
fedactors.orders = (model, data) => {
  const rows = model.device.length, {counts, windows} = model;
  const sum = (codes) => Float64Array.from({length: rows}, (_, row) => codes.reduce((all, code) => all + counts[code][row], 0));
  const asked = sum(counts.map((_, code) => code)), heard = sum(data.heard);
  const of = (name, values) => (row) => asked[row]
    ? `${name} ${values[row].toLocaleString("en")} of ${asked[row].toLocaleString("en")}` : "never asked";
  const found = [
    {key: "device", name: "device number", value: () => 0, said: of("heard", heard)},
    {key: "group", name: "group", value: (row) => -model.group[row], said: of("heard", heard)},
    {key: "heard", name: "most heard", value: (row) => heard[row], said: of("heard", heard)},
    {key: "unheard", name: "least heard", value: (row) => -heard[row], said: of("heard", heard)},
    {key: "steps", name: "most steps", value: (row) => model.steps[row],
     said: (row) => `${model.steps[row].toLocaleString("en")} steps`},
    {key: "asked", name: "most asked", value: (row) => asked[row], said: (row) => `asked ${asked[row].toLocaleString("en")}`},
  ];
  if (model.energy) {
    const joules = (row) => model.energy[row] * data.joules;
    found.push({key: "energy", name: "most energy", value: (row) => model.energy[row],
      said: (row) => `${joules(row).toLocaleString("en", {maximumSignificantDigits: 3})} J`});
  }
  data.outcomes.forEach(({name}, code) => {
    if (data.heard.indexOf(code) !== 0 && counts[code].some((count) => count > 0)) {
      found.push({key: name, name: `most ${name}`, value: (row) => counts[code][row], said: of(name, counts[code])});
    }
  });
  if (windows) {
    const on = Float64Array.from({length: rows}, (_, row) => {
      let time = 0;
      for (let k = windows.starts[row]; k < windows.starts[row + 1]; k++) time += windows.off[k] - windows.on[k];
      return windows.known[row] < 0 ? NaN : time / data.end;
    });
    found.push({key: "absent", name: "most absent (least time on)",
      value: (row) => Number.isNaN(on[row]) ? -2 : -on[row],
      said: (row) => Number.isNaN(on[row]) ? "time on not recorded" : `on ${Math.round(100 * Math.min(1, on[row]))}% of the time`});
  } else {
    found.push({key: "absent", name: "most absent (least asked)", value: (row) => -asked[row],
      said: (row) => `asked ${asked[row].toLocaleString("en")}`});
  }
  return {list: found, asked, heard};
};

/* The rows that a search finds. Numbers and ranges (17, 20-40) are devices, "never" those never heard, other words
   groups or outcomes; words have to hold all, of numbers one. */
fedactors.search = (text, model, data, heard) => {
  const words = text.toLowerCase().split(/[\s,;]+/).filter(Boolean);
  const ranges = words.map((word) => /^(\d+)(?:(?:-|\.\.)(\d+))?$/.exec(word)).filter(Boolean)
    .map(([, low, high]) => [Number(low), Number(high ?? low)]);
  const tests = words.filter((word) => !/^\d+(?:(?:-|\.\.)\d+)?$/.test(word)).map((word) => {
    if (word === "never") return (row) => heard[row] === 0;
    const groups = data.groups.map((group) => group.toLowerCase().includes(word));
    const codes = data.outcomes.flatMap(({name}, code) => name.includes(word) ? [code] : []);
    return (row) => groups[model.group[row]] || codes.some((code) => model.counts[code][row] > 0);
  });
  const found = [];
  for (let row = 0; row < model.device.length; row++) {
    const number = model.device[row];
    const here = !ranges.length || ranges.some(([low, high]) => low <= number && number <= high);
    if (here && tests.every((test) => test(row))) found.push(row);
  }
  return found;
};

/* Rows with the highest value first; where values are equal, by device. */
fedactors.ordered = (rows, order) => {
  const values = new Map(rows.map((row) => [row, order.value(row)]));
  return [...rows].sort((a, b) => values.get(b) - values.get(a) || a - b);
};
