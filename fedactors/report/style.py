"""How the page looks. Colours come from the palette, so that page and charts agree in light and in dark."""

from __future__ import annotations

from fedactors.report.palette import DARK, LIGHT

_CSS = """
*{box-sizing:border-box}
html{-webkit-text-size-adjust:100%}
body{margin:0;background:var(--page);color:var(--ink);font:15px/1.5 system-ui,-apple-system,"Segoe UI",Roboto,\
"DejaVu Sans",sans-serif;font-variant-numeric:tabular-nums}
header,main,footer{max-width:1200px;margin:0 auto;padding:0 28px}
header{padding-top:22px}
h1,h2,h3,p{margin:0}
h1{font-size:32px;line-height:1.2;font-weight:650;letter-spacing:-.015em;overflow-wrap:anywhere}
h2{font-size:21px;font-weight:650;letter-spacing:-.01em}
h3{font-size:15px;font-weight:650}
.brand{font-weight:650;font-size:13px;color:var(--accent);letter-spacing:.02em}
.brand span{color:var(--text);font-weight:400}
.lead{color:var(--text);margin-top:4px;font-size:16px}
.warning{margin-top:12px;padding:8px 14px;border-left:3px solid #e2a534;background:var(--soft);overflow-wrap:anywhere}
.patch{white-space:nowrap}
.cards{display:flex;flex-wrap:wrap;gap:14px 0;margin:18px 0 0;border-top:1px solid var(--line);\
border-bottom:1px solid var(--line);padding:12px 0}
.cards div{flex:1 1 150px;padding:0 18px;border-left:1px solid var(--line)}
.cards div:first-child{border-left:0;padding-left:0}
dt{color:var(--text);font-size:13px}
.cards dd{margin:0;font-size:25px;font-weight:650;letter-spacing:-.015em;line-height:1.3;white-space:nowrap}
.cards dd.small{font-size:13px;font-weight:400;color:var(--text);letter-spacing:0;white-space:normal;line-height:1.4}
section{margin-top:30px}
.bar{display:flex;flex-wrap:wrap;align-items:center;gap:8px 22px;margin-bottom:10px}
.row{display:grid;gap:18px 36px;grid-template-columns:minmax(0,1fr)}
.row.two{grid-template-columns:repeat(2,minmax(0,1fr))}
.row.wide{grid-template-columns:minmax(0,1.35fr) minmax(0,1fr)}
@media(max-width:860px){.row.two,.row.wide{grid-template-columns:minmax(0,1fr)}}
.chart{margin:0;min-width:0}
figcaption p,.sub{color:var(--text);font-size:13.5px}
figcaption{margin-bottom:6px}
.canvas{min-height:120px}
.note{color:var(--text);font-size:12.5px;margin-top:4px;font-style:italic}
.switch{border:0;margin:0;padding:0;display:flex;align-items:center;flex-wrap:wrap}
.switch legend{float:left;color:var(--text);font-size:13.5px;padding:0 10px 0 0}
.switch input{position:absolute;opacity:0}
.switch span,button{display:inline-block;border:1px solid var(--line);padding:3px 12px;font:inherit;font-size:13.5px;\
cursor:pointer;color:var(--ink);background:var(--page)}
.switch label+label span{border-left:0}
.switch label:first-of-type span{border-radius:6px 0 0 6px}
.switch label:last-of-type span{border-radius:0 6px 6px 0}
.switch input:checked+span{background:var(--ink);color:var(--page);border-color:var(--ink)}
.switch input:focus-visible+span,button:focus-visible,.canvas:focus-visible,summary:focus-visible,pre:focus-visible{\
outline:2px solid var(--accent);outline-offset:2px}
button{border-radius:6px}
button:hover,.switch input:not(:checked)+span:hover{background:var(--soft)}
.buttons{display:flex;flex-wrap:wrap;gap:6px;align-items:center;margin:4px 0 8px}
.hint{color:var(--text);font-size:12.5px;margin-left:8px}
.chips{list-style:none;display:flex;flex-wrap:wrap;gap:4px 16px;margin:0;padding:0;font-size:13.5px;color:var(--text)}
i{display:inline-block;width:11px;height:11px;border-radius:2px;margin-right:8px;vertical-align:-1px}
.chips i{margin-right:6px}
.sheet{min-width:0;overflow-x:auto}
table{border-collapse:collapse;width:100%;font-size:14px;margin-top:4px}
th{font-weight:400;color:var(--text);font-size:13px;text-align:left;border-bottom:1px solid var(--line)}
th,td{padding:5px 14px 5px 0;vertical-align:top;overflow-wrap:anywhere}
td{border-bottom:1px solid var(--grid)}
.n{text-align:right;white-space:nowrap}
th:last-child,td:last-child{padding-right:0}
.parts{display:flex;height:14px;min-width:190px;margin-top:4px;border-radius:3px;overflow:hidden}
.parts b{height:100%}
.parts{margin-right:0}
header .parts{height:10px;margin-top:18px}
header .chips{margin-top:8px}
td i{margin-left:0}
.digests{display:grid;grid-template-columns:max-content minmax(0,1fr);gap:2px 18px;margin:8px 0 0}
.digests dd{margin:0;overflow-wrap:anywhere}
code,pre{font:12.5px/1.5 ui-monospace,SFMono-Regular,Menlo,"DejaVu Sans Mono",monospace}
details{margin-top:28px;border-top:1px solid var(--line);padding-top:14px}
summary{cursor:pointer;font-weight:650}
pre{background:var(--soft);padding:14px 18px;border-radius:6px;overflow:auto;max-height:520px}
footer{color:var(--text);font-size:12.5px;padding-top:34px;padding-bottom:34px}
.bk-Tooltip{--tooltip-color:var(--page)!important;--tooltip-text:var(--ink)!important;--tooltip-border:var(--line)!important;\
--tooltip-arrow-color:var(--line)!important;--tooltip-arrow-inner-color:var(--page)!important;opacity:1!important;\
font:13px/1.5 system-ui,sans-serif!important;border-radius:6px!important;padding:6px 10px!important}
.skip{position:absolute;left:-999px}
.skip:focus{left:12px;top:8px}
@media print{.buttons,.switch{display:none}}
"""


def css() -> str:
    """Return the style sheet."""
    light = _variables({**LIGHT, "soft": "#f5f7f8", "accent": "#20718e"})
    dark = _variables({**DARK, "soft": "#1e252b", "accent": "#6fbcd6"})
    return f":root{{{light}}}\n@media(prefers-color-scheme:dark){{:root{{{dark}}}}}\n{_CSS}"


def _variables(colors: dict[str, str]) -> str:
    return ";".join(f"--{name}:{color}" for name, color in colors.items())
