/* Columns of whole numbers, read back from text: see packed_columns.py. */
"use strict";

fedactors.unpack = async ({columns, blob}) => {
  const zipped = Uint8Array.from(atob(blob), (letter) => letter.charCodeAt(0));
  const stream = new Blob([zipped]).stream().pipeThrough(new DecompressionStream("deflate"));
  const bytes = new Uint8Array(await new Response(stream).arrayBuffer());
  const found = {};
  let at = 0;
  for (const [name, length] of columns) {
    const values = new Int32Array(length);
    for (let k = 0; k < length; k++) {
      values[k] = bytes[at + k] | (bytes[at + length + k] << 8)
        | (bytes[at + 2 * length + k] << 16) | (bytes[at + 3 * length + k] << 24);
    }
    found[name] = values;
    at += 4 * length;
  }
  return found;
};

/* Sums of values from the first on; with `starts`, from each of these indices on anew. */
fedactors.sums = (values, starts) => {
  const found = new Float64Array(values.length);
  let sum = 0, next = 0;
  for (let k = 0; k < values.length; k++) {
    if (starts && starts[next] === k) {
      sum = 0;
      while (starts[next] === k) next++;
    }
    found[k] = sum += values[k];
  }
  return found;
};

/* Where each of the parts of these lengths begins, and where the last one ends; negative lengths count as 0. */
fedactors.starts = (lengths) => {
  const found = new Int32Array(lengths.length + 1);
  for (let k = 0; k < lengths.length; k++) found[k + 1] = found[k] + Math.max(0, lengths[k]);
  return found;
};

/* The first index from `low` to `high` whose value is larger than `wanted`; `high` if there is none. */
fedactors.after = (values, wanted, low, high) => {
  while (low < high) {
    const middle = (low + high) >> 1;
    if (values[middle] > wanted) high = middle; else low = middle + 1;
  }
  return low;
};
