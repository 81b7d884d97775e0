/* Virtual time as on a clock: where ticks stand, and what they say. Times are seconds. */
"use strict";

fedactors.STEPS = [
  0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200,
  10800, 21600, 43200, 86400, 172800, 432000, 864000, 1728000, 4320000, 8640000,
];

fedactors.ticks = (start, end, most) => {
  const step = fedactors.STEPS.find((one) => (end - start) / one <= most) ?? (end - start) / most;
  const found = [];
  for (let k = Math.ceil(start / step - 1e-9); k * step <= end; k++) found.push(k * step);
  return {step, found};
};

fedactors.clock = (seconds, step = 1) => {
  const digits = step < 0.01 ? 3 : step < 0.1 ? 2 : step < 1 ? 1 : 0;
  const parts = Math.round(seconds * 10 ** digits), whole = Math.floor(parts / 10 ** digits);
  const two = (value) => String(Math.floor(value)).padStart(2, "0");
  const fraction = digits ? `.${String(parts % 10 ** digits).padStart(digits, "0")}` : "";
  const days = whole >= 86400 || step >= 86400 ? `${Math.floor(whole / 86400)} d ` : "";
  if (step >= 86400) return days.trim();
  return `${days}${two((whole % 86400) / 3600)}:${two((whole % 3600) / 60)}:${two(whole % 60)}${fraction}`;
};
