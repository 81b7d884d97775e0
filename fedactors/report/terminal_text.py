"""Figures as text for a terminal: one function per kind of result."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

Figures = Mapping[str, Any]
_OF_PARTS = ("federated_", "central_", "validation_federated_", "validation_central_")


def summary(figures: Figures) -> str:
    """Return the summary of a run."""
    final = figures["final"]
    learned = ", ".join(_measures(final)) if final else "never evaluated"
    return "\n".join(
        [
            f"{figures['name']}: {learned}",
            *_participation(figures),
            *_reached(figures),
            f"  wall time  {figures['wall_seconds']:.1f} s; ended because: {figures['ended_because']}",
            *_remarks(figures),
            *([f"  cost       {figures['cost']:.4g} for the machines' time"] if "cost" in figures else []),
            f"  digests    {', '.join(f'{k} {v[:12]}' for k, v in figures['digests'].items())}",
            f"  folder     {figures['folder']}",
        ]
    )


def _measures(final: Figures) -> list[str]:
    """Return accuracy and loss, and what else was measured of the whole test set."""
    first = [name for name in ("accuracy", "loss") if name in final]
    others = [name for name in final if name not in first and not name.startswith(_OF_PARTS)]
    return [f"{name} {final[name]:.4f}" for name in (*first, *others) if final[name] is not None]


def replay(figures: Figures) -> str:
    """Return the statistics of a replay."""
    done = figures["steps_done_of_wanted"]
    most = max(1, *done.values())
    bars = [f"    {share:>4}  {'█' * -(-40 * count // most)} {count}" for share, count in done.items() if count]
    return "\n".join(
        [
            f"{figures['name']}: {figures['devices']:,} devices, clock only",
            *_participation(figures),
            "  local steps done, of those wanted, by clients heard:",
            *bars,
            f"  wall time  {figures['wall_seconds']:.1f} s; ended because: {figures['ended_because']}",
            *_remarks(figures),
            f"  folder     {figures['folder']}",
        ]
    )


def _remarks(figures: Figures) -> list[str]:
    """Return what a run turned out to be that is easily missed."""
    return [f"  note       {text}" for text in figures.get("remarks", [])]


_NO_FORECAST = "  forecast   not made; --forecast tells the time and memory of a run"


def check(figures: Figures) -> str:
    """Return what a scenario will do."""
    groups = figures["devices"]
    rounds = figures["rounds"]
    samples = figures["samples"]
    listed = ", ".join(f"{count:,} {name}" for name, count in groups.items())
    memory = figures["memory_bytes"]
    model = figures["model"]
    lines = [
        f"{figures['name']}: the scenario is sound",
        f"  devices    {sum(groups.values()):,} ({listed})",
        f"  samples    {samples['total']:,} in all, {_range(samples['smallest'], samples['largest'])} per device",
        *_inputs(figures["inputs"]),
        f"  model      {model['name']}, {model['parameters']:,} parameters, {size(model['bytes'])}",
        f"  rounds     {rounds['wanted']:,}; of the first {rounds['replayed']} each asks {rounds['asked']:.1f},"
        f" hears {rounds['heard']:.1f} ({rounds['partial']:.1f} partial), takes {span(rounds['seconds'])}",
        f"  memory     {size(memory['data'])} of data on each node, {size(memory['host'])} for each client host",
    ]
    if updates := memory.get("updates"):
        lines.append(f"             {size(updates)} at the server for the single updates of a round")
    lines.append(_forecast(figures["forecast"]) if figures["forecast"] else _NO_FORECAST)
    if figures["too_slow_devices"]:
        lines.append(f"  note       {figures['too_slow_devices']:,} devices cannot make the deadline even undisturbed")
    lines += [f"  note       {text}" for text in figures["notes"]]
    lines += [f"  costly     {text}" for text in figures["costly"]]
    return "\n".join(lines)


def _inputs(inputs: list[Figures]) -> list[str]:
    """Return a line about inputs that have names."""
    said = ", ".join(f"{one['name'] or 'by position'} {tuple(one['shape'])}" for one in inputs)
    return [f"  inputs     {said}"] if any(one["name"] for one in inputs) else []


def _range(low: int, high: int) -> str:
    """Return whole numbers from `low` to `high`, or the one that there is."""
    return f"{low:,}" if low == high else f"{low:,} to {high:,}"


def _forecast(figures: Figures) -> str:
    where = "in this process" if figures["fleet"] == "local" else f"on Ray with {figures['actors']} client hosts"
    gpu = f", {size(figures['gpu_bytes'])} of a GPU" if figures["gpu_bytes"] else ""
    return (
        f"  forecast   {span(figures['wall_seconds'])} {where}: {span(figures['seconds_per_round'])} a round,"
        f" {figures['steps_per_second']:,.0f} local steps/s; {size(figures['host_bytes'])} for each host{gpu}"
    )


def verify(figures: Figures) -> str:
    """Return the digests of each fleet, and whether they agree."""
    rows = [
        f"  {run['fleet']:<6}{run['actors']:>3}  " + "  ".join(f"{k} {v[:16]}" for k, v in run["digests"].items())
        for run in figures["runs"]
    ]
    verdict = "the same bits on every fleet" if figures["equal"] else "DIGESTS DIFFER"
    return "\n".join([f"{figures['name']}: {verdict}", *rows])


def audit(figures: Figures) -> str:
    """Return what an audit of a run has checked, and what is wrong."""
    lines = []
    for check in figures["checks"]:
        wrong = check["wrong"]
        lines.append(f"  {check['name']:<12} {'WRONG' if wrong else 'sound'}: {check['looked_at']}")
        lines += [f"    {text}" for text in wrong]
    verdict = "the records are sound" if figures["sound"] else "THE RECORDS ARE WRONG"
    return "\n".join([f"{figures['folder']}: {verdict}", *lines])


def _participation(figures: Figures) -> list[str]:
    asked = max(figures["asked"], 1)
    outcomes = [f"{name} {count:,} ({count / asked:.0%})" for name, count in figures["outcomes"].items() if count]
    sampled = figures.get("sampled_devices", 0)
    said = [f"  sampled    {sampled:,} devices take part by a law that is drawn, not by timing"] if sampled else []
    return [
        *said,
        f"  rounds     {figures['plans']:,} in {span(figures['virtual_seconds'])} of virtual time"
        f" ({figures['empty_rounds']} heard nobody)",
        f"  asked      {figures['asked']:,}: {', '.join(outcomes)}",
        f"  clients    {figures['clients_heard']:,} different ones were heard{_evenness(figures)}",
        f"  steps      {figures['steps']:,} local steps aggregated, {figures['steps_wasted']:,} wasted",
        f"  traffic    {size(figures['bytes']['down'])} down, {size(figures['bytes']['up'])} up",
        *_energy(figures),
        *_privacy(figures),
    ]


def _privacy(figures: Figures) -> list[str]:
    if "epsilon" not in figures:
        return []
    return [f"  privacy    epsilon {figures['epsilon']:.3g} at delta {figures['delta']:g}, of the device heard most"]


def _energy(figures: Figures) -> list[str]:
    if "joules" not in figures:
        return []
    line = f"  energy     {joules(figures['joules'])} on devices, {joules(figures['joules_wasted'])} of it wasted"
    emitted = figures.get("co2_grams")
    return [line + stage_shares(figures) + (f"; {grams(emitted)} of CO2" if emitted is not None else "")]


def stage_shares(figures: Figures) -> str:
    """Return what shares of the energy stages have, where they cost something by time; nothing else."""
    parts = figures.get("joules_of_stages") or {}
    whole = sum(parts.values())
    return f" ({', '.join(f'{name} {part / whole:.1%}' for name, part in parts.items())})" if whole else ""


def grams(number: float) -> str:
    """Return a mass as a person reads it: 1500.0 -> "1.5 kg"."""
    for unit, length in (("t", 1e6), ("kg", 1e3), ("g", 1.0)):
        if number >= length:
            return f"{number / length:.3g} {unit}"
    return f"{number * 1000:.3g} mg"


def _reached(figures: Figures) -> list[str]:
    """Return what the highest round accuracy took that was reached, where joules or money are counted."""
    reached = figures.get("to_accuracy") or []
    if not reached or not {"joules", "cost"} & set(reached[-1]):
        return []
    last = reached[-1]
    spent = [joules(last["joules"])] if "joules" in last else []
    spent += [f"a cost of {last['cost']:.4g}"] if "cost" in last else []
    of = " (by validation accuracy)" if "validation_accuracy" in last else ""
    when = f"round {last['round']:,}, {span(last['virtual_seconds'])}"
    return [f"  to {last['accuracy']:.0%}     {when}, {', '.join(spent)}{of}"]


def joules(number: float) -> str:
    """Return an energy as a person reads it: 1500.0 -> "1.5 kJ"."""
    for unit, length in (("MJ", 1e6), ("kJ", 1e3)):
        if number >= length:
            return f"{number / length:.1f} {unit}"
    return f"{number:.3g} J"


def _evenness(figures: Figures) -> str:
    """Return how evenly clients contributed, and how old the models were that they started from."""
    fairness, age = figures.get("fairness"), figures.get("staleness")
    said = f" (Gini {fairness['gini']:.2f})" if fairness else ""
    return said + (
        f", {age['mean']:.1f} versions behind on average, {age['max']} at most" if age and age["max"] else ""
    )


def size(number: float) -> str:
    """Return a number of bytes as a person reads it: 1_500_000 -> "1.5 MB"."""
    for unit in ("B", "kB", "MB", "GB"):
        if number < 1000:
            return f"{number:.0f} {unit}" if unit == "B" else f"{number:.1f} {unit}"
        number /= 1000
    return f"{number:.1f} TB"


_SHORT = 0.05  # seconds; shorter times have no digit in tenths of a second


def span(seconds: float) -> str:
    """Return seconds as a person reads them: 5400.0 -> "1.5 h"."""
    for unit, length in (("d", 86_400), ("h", 3600), ("min", 60)):
        if seconds >= 2 * length:
            return f"{seconds / length:.1f} {unit}"
    return f"{1000 * seconds:.3g} ms" if 0 < seconds < _SHORT else f"{seconds:.1f} s"
