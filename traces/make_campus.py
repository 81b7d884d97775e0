"""Makes traces/campus.csv: sixty synthetic devices that come and go within an hour.

Not a recording. Each device alternates between on and off; both times are exponential with means of its own (on: 15 to
180 s, off: 4 to 40 s), in whole tenths of a second. It exists so that the quickstart needs no download, and so that
devices drop out often enough to be seen in a minute.

    python traces/make_campus.py
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

HOUR = 3600.0


def main() -> None:
    """Write the file beside this one."""
    draws = np.random.Generator(np.random.Philox(20))
    lines = ["# synthetic: made by make_campus.py, not recorded", "device,on,off,first,last"]
    for device in range(60):
        on_mean, off_mean = np.exp(draws.uniform(np.log([15, 4]), np.log([180, 40])))
        span, now = "0s,3600s", float(draws.exponential(off_mean))
        while now < HOUR:
            end = min(now + draws.exponential(on_mean) + 0.1, HOUR)
            lines.append(f"campus-{device:02},{now:.1f}s,{end:.1f}s,{span}")
            span, now = ",", end + draws.exponential(off_mean) + 0.1
    Path(__file__).with_name("campus.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
