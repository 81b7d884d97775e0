"""What counts as available: an expression over the facts that a phone's event log reports.

    rule  = both { ("|" | "or") both }
    both  = not { ("&" | "and") not }
    not   = ("!" | "not") not | "(" rule ")" | fact
    fact  = word | "battery" comparison number [ "%" ]

A fact that the phone has not reported yet is unknown, and so is what depends on it (Kleene's logic: unknown
and false is false, unknown or true is true). A phone is available only while its rule is certainly true.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import NoReturn

from fedactors.errors import TraceError, suggestion

CELLULAR = frozenset({"2g", "3g", "4g", "5g"})


@dataclass(slots=True)
class Phone:
    """What a phone has reported so far; None is not yet."""

    charging: bool | None = None
    screen: bool | None = None
    locked: bool | None = None
    network: str | None = None  # "wifi", "2g" … "5g", "unknown"
    battery: float | None = None  # percent


Fact = Callable[[Phone], "bool | None"]

_COMPARE: dict[str, Callable[[float, float], bool]] = {
    ">=": operator.ge,
    "<=": operator.le,
    ">": operator.gt,
    "<": operator.lt,
    "==": operator.eq,
    "!=": operator.ne,
}
_TOKEN = re.compile(r"\s*([<>=!]=|[<>&|!()]|\d?[a-z_]\w*|\d+(?:\.\d+)?|%|\S)", re.ASCII)
_DEPTH = 50  # of parentheses and negations


@dataclass(frozen=True)
class Rule:
    """A parsed rule; `holds(phone)` is True, False or None for unknown."""

    text: str
    holds: Fact


def parse(text: str) -> Rule:
    """Parse `text`. Raises TraceError naming the word that is not understood and what is accepted."""
    parser = _RuleParser(text)
    holds = parser.either()
    if parser.word:
        parser.fail(f'"{parser.word}" after the end', "&, | or nothing")
    return Rule(text, holds)


def negation(fact: Fact) -> Fact:
    """Return not `fact`; unknown stays unknown."""

    def holds(phone: Phone) -> bool | None:
        value = fact(phone)
        return None if value is None else not value

    return holds


def conjunction(left: Fact, right: Fact) -> Fact:
    """Return `left` and `right`: false if either is false, else unknown if either is unknown."""

    def holds(phone: Phone) -> bool | None:
        first = left(phone)
        if first is False:
            return False
        second = right(phone)
        return second if first or second is False else None

    return holds


def disjunction(left: Fact, right: Fact) -> Fact:
    """Return `left` or `right`: true if either is true, else unknown if either is unknown."""
    return negation(conjunction(negation(left), negation(right)))


def _on_network(names: frozenset[str]) -> Fact:
    return lambda phone: None if phone.network is None else phone.network in names


_FACTS: dict[str, Fact] = {
    "charging": lambda phone: phone.charging,
    "screen": lambda phone: phone.screen,
    "screen_on": lambda phone: phone.screen,
    "screen_off": negation(lambda phone: phone.screen),
    "locked": lambda phone: phone.locked,
    "unlocked": negation(lambda phone: phone.locked),
    "wifi": _on_network(frozenset({"wifi"})),
    "cellular": _on_network(CELLULAR),
    **{name: _on_network(frozenset({name})) for name in sorted(CELLULAR)},
}


class _RuleParser:
    """Recursive descent over the words of one rule; `word` is the next one, "" at the end."""

    def __init__(self, text: str) -> None:
        self.text = text
        self._words = iter(_TOKEN.findall(text.lower()))
        self._depth = 0
        self.word = ""
        self.advance()

    def fail(self, found: str, accepted: str) -> NoReturn:
        short = self.text if len(self.text) <= 80 else f"{self.text[:80]}…"
        raise TraceError(f'rule "{short}": {found} (accepted: {accepted})')

    def advance(self) -> str:
        word, self.word = self.word, next(self._words, "")
        return word

    def either(self) -> Fact:
        fact = self.both()
        while self.word in ("|", "or"):
            self.advance()
            fact = disjunction(fact, self.both())
        return fact

    def both(self) -> Fact:
        fact = self.one()
        while self.word in ("&", "and"):
            self.advance()
            fact = conjunction(fact, self.one())
        return fact

    def one(self) -> Fact:
        self._depth += 1
        if self._depth > _DEPTH:
            self.fail("too deeply nested", f"at most {_DEPTH} levels")
        word = self.advance()
        if word in ("!", "not"):
            fact = negation(self.one())
        elif word == "(":
            fact = self.either()
            if self.advance() != ")":
                self.fail("a parenthesis that is not closed", ")")
        else:
            fact = self.battery() if word == "battery" else self.known(word)
        self._depth -= 1
        return fact

    def known(self, word: str) -> Fact:
        if word not in _FACTS:
            self._unknown(word)
        return _FACTS[word]

    def _unknown(self, word: str) -> NoReturn:
        found = f'unknown word "{word[:40]}"' if word else "ends where a word is expected"
        short = self.text if len(self.text) <= 80 else f"{self.text[:80]}…"
        hint = suggestion(word, [*_FACTS, "battery >= 40"])
        raise TraceError(f'rule "{short}": {found}{hint}')

    def battery(self) -> Fact:
        compare = _COMPARE.get(self.advance())
        number = self.advance()
        if compare is None or not number[:1].isdecimal() or not number.replace(".", "", 1).isdecimal():
            self.fail("battery is compared with nothing", "battery >= 40, with >=, <=, >, <, == or !=")
        if self.word == "%":
            self.advance()
        level, test = float(number), compare
        return lambda phone: None if phone.battery is None else test(phone.battery, level)
