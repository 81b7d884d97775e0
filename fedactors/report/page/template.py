"""The page as a Jinja template; every value that is put in is escaped unless we made it."""

from __future__ import annotations

PAGE = """\
{% macro chips(items, name) %}
<ul class="chips" aria-label="{{ name }}">
  {% for o in items %}<li><i style="background:{{ o.color }}"></i>{{ o.said }}</li>{% endfor %}
</ul>
{% endmacro %}
{% macro stack(parts, name) %}
<span class="parts" role="img" aria-label="{{ name }}">
  {%- for p in parts %}<b style="width:{{ p.width }}%;background:{{ p.color }}" title="{{ p.said }}"></b>{% endfor -%}
</span>
{% endmacro %}
{% macro chart(c) %}
<figure class="chart" id="figure-{{ c.key }}">
  <figcaption>
    <div class="head"><h3>{{ c.title }}</h3>
      <span class="saves" role="group" aria-label="Save this figure">
        <button type="button" data-save="svg" data-of="{{ c.key }}" title="Save {{ c.title }} as SVG">SVG</button>
        <button type="button" data-save="csv" data-of="{{ c.key }}" title="Save its numbers as CSV">CSV</button>
      </span></div>
    <p>{{ c.text }}</p>
  </figcaption>
  {% if c.data %}
  <div class="tools">
    <label>find<input type="search" data-tool="find" placeholder="17, 20-40, a group, late, never" \
title="Numbers and ranges of devices, names of groups, outcomes that happened to them; never: \
those never heard"></label>
    <label>order<select data-tool="order"></select></label>
    <label>rows<select data-tool="size">
      <option value="tall">readable</option><option value="low">low</option><option value="all">all at once</option>
    </select></label>
    <output data-tool="found" aria-live="polite"></output>
  </div>
  <div class="buttons" role="group" aria-label="Window of the timeline">
    <button type="button" data-move="-0.5" title="Earlier (left arrow)">◀ earlier</button>
    <button type="button" data-move="0.5" title="Later (right arrow)">later ▶</button>
    <button type="button" data-zoom="0.5" title="Zoom in (+)">zoom in</button>
    <button type="button" data-zoom="2" title="Zoom out (-)">zoom out</button>
    <button type="button" data-zoom="all" title="Everything (0)">all</button>
    <span class="hint">drag to move · Ctrl + wheel zooms, all charts with it · keys: ← → ↑ ↓ + - 0</span>
  </div>
  <div id="timeline" class="canvas" role="img" aria-label="{{ c.said }}" tabindex="0">
    <div class="scroll" data-part="scroll"><canvas data-part="rows"></canvas><div data-part="space"></div></div>
    <canvas data-part="axis"></canvas><canvas data-part="strip"></canvas>
    <div class="tip" data-part="tip" hidden></div>
  </div>
  {% else %}
  <div id="{{ c.key }}" class="canvas" role="img" aria-label="{{ c.said }}"></div>
  {% endif %}
  {% if c.note %}<p class="note">{{ c.note }}</p>{% endif %}
</figure>
{% endmacro %}
{% macro sheet(t) %}
<div class="sheet">
  {% if t.title %}<h3>{{ t.title }}</h3>{% endif %}
  <table>
  <thead><tr>
    {% for head in t.heads %}
    <th scope="col"{% if loop.index0 in t.numbers %} class="n"{% endif %}>{{ head }}</th>
    {% endfor %}
  </tr></thead>
  <tbody>
    {% for row in t.rows %}
    <tr>
      {% for cell in row %}
      <td{% if loop.index0 in t.numbers %} class="n"{% elif cell.color %} class="patch"{% endif %}>
        {%- if cell.color %}<i{% if cell.dash %} class="{{ cell.dash }}"{% endif %} \
style="background:{{ cell.color }}"></i>{% endif %}
        {%- if cell.parts %}{{ stack(cell.parts, cell.said) }}{% endif %}
        {{- cell.text }}</td>
      {% endfor %}
    </tr>
    {% endfor %}
  </tbody>
  </table>
  {% if t.note %}<p class="note">{{ t.note }}</p>{% endif %}
</div>
{% endmacro %}
<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; script-src 'unsafe-inline'; \
style-src 'unsafe-inline'; img-src data: blob:; base-uri 'none'; form-action 'none'">
<link rel="icon" href="data:,">
<title>{{ title }} · fedactors</title>
<style>{{ css }}</style>
</head>
<body>
<a class="skip" href="#main">Skip to the report</a>
<header>
  <div class="head"><p class="brand">fedactors <span>{{ kind }}</span></p>
    {% if data %}
    <span class="acts"><button type="button" id="theme" title="Change the colours">dark</button>
      <button type="button" id="print" title="Print, or save as PDF">print</button></span>
    {% endif %}
  </div>
  <h1>{{ title }}</h1>
  {% if answer %}<p class="answer">{{ answer }}</p>{% endif %}
  <p class="lead">{{ lead }}</p>
  {% for line in warnings %}<p class="warning">{{ line }}</p>{% endfor %}
  {% if cards %}
  <dl class="cards">
    {% for card in cards %}
    <div><dt>{{ card.name }}</dt><dd>{{ card.value }}</dd><dd class="small">{{ card.small }}</dd></div>
    {% endfor %}
  </dl>
  {% endif %}
  {% if parts %}{{ stack(parts, "Outcomes of everybody asked") }}{{ chips(parts, "Outcomes") }}{% endif %}
</header>
<main id="main">
<noscript><p class="warning">The charts need JavaScript; text and tables do without it.</p></noscript>
{% for s in sections %}
<section aria-labelledby="h-{{ s.key }}">
  <div class="bar">
    <h2 id="h-{{ s.key }}">{{ s.title }}</h2>
    {% if s.axes %}
    <fieldset class="switch"><legend>against</legend>
      {% for axis in s.axes %}
      <label><input type="radio" name="axis" value="{{ axis.key }}" data-label="{{ axis.label }}" \
data-scale="{{ axis.scale }}"
        {%- if loop.first %} checked{% endif %}><span>{{ axis.name }}</span></label>
      {%- endfor %}
    </fieldset>
    {% endif %}
    {% if s.outcomes %}{{ chips(s.outcomes, "Colours of outcomes") }}{% endif %}
  </div>
  <div class="row {{ s.layout }}">
    {% for c in s.charts %}{{ chart(c) }}{% endfor %}
    {% for t in s.tables %}{{ sheet(t) }}{% endfor %}
  </div>
</section>
{% endfor %}
{% if digests %}
<section aria-labelledby="h-digests">
  <h2 id="h-digests">Digests</h2>
  <p class="sub">Equal digests mean equal bits, on any number of machines.</p>
  <dl class="digests">
    {% for name, value in digests %}<dt>{{ name }}</dt><dd><code>{{ value }}</code></dd>{% endfor %}
  </dl>
</section>
{% endif %}
{% if scenario %}
<details><summary>Scenario, every default shown</summary>
<pre tabindex="0"><code>{{ scenario }}</code></pre></details>
{% endif %}
</main>
<footer>{{ foot }}</footer>
{% if data %}
<script type="application/json" id="charts">{{ data }}</script>
<script>{{ library }}</script>
<script>{{ script }}</script>
{% endif %}
</body>
</html>
"""
