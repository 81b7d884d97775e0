/* One window for all charts that show progress: what one of them zooms to, the others show too. */
"use strict";

/* The value of y at x, by straight lines between points; both ascend. */
fedactors.along = (xs, ys, x) => {
  const k = Math.min(xs.length - 1, Math.max(1, fedactors.after(xs, x, 0, xs.length)));
  const width = xs[k] - xs[k - 1];
  return width > 0 ? ys[k - 1] + (ys[k] - ys[k - 1]) * (x - xs[k - 1]) / width : ys[k - 1];
};

/* `progress` has columns that ascend together (round, virtual seconds …), of one run; without it, only charts with the
   same axis are tied. A member has `key()`, the column that its axis shows, `get()`, its window, and `set(from, to)`. */
fedactors.tie = (progress) => {
  const members = [];
  let busy = false;
  const known = (key) => progress !== null && key in progress;
  const convert = (value, from, to) => from === to ? value : fedactors.along(progress[from], progress[to], value);
  const changed = (member) => {
    if (busy) return;
    busy = true;
    const from = member.key(), [start, end] = member.get();
    for (const other of members) {
      const to = other.key();
      if (other !== member && (from === to || (known(from) && known(to)))) {
        other.set(convert(start, from, to), convert(end, from, to));
      }
    }
    busy = false;
  };
  const quietly = (act) => {
    busy = true;
    act();
    busy = false;
  };
  return {members, changed, quietly, convert: (value, from, to) => from === to || (known(from) && known(to)) ? convert(value, from, to) : null};
};
