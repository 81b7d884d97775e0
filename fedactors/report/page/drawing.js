/* Two ways to draw the same: on a canvas, and as the text of an SVG file. */
"use strict";

fedactors.FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, 'DejaVu Sans', sans-serif";

fedactors.canvasPen = (canvas, width, height) => {
  const scale = devicePixelRatio || 1;
  canvas.width = Math.round(width * scale);
  canvas.height = Math.round(height * scale);
  canvas.style.width = `${width}px`;
  canvas.style.height = `${height}px`;
  const to = canvas.getContext("2d");
  to.setTransform(scale, 0, 0, scale, 0, 0);
  to.clearRect(0, 0, width, height);
  return {
    rect: (x, y, w, h, color) => { to.fillStyle = color; to.fillRect(x, y, w, h); },
    hatch: (x, y, w, h, page, ink) => {
      to.fillStyle = page; to.globalAlpha = 0.55; to.fillRect(x, y, w, h); to.globalAlpha = 1;
      to.save();
      to.beginPath(); to.rect(x, y, w, h); to.clip();
      to.strokeStyle = ink; to.lineWidth = 1; to.globalAlpha = 0.7;
      to.beginPath();
      for (let at = x - h - ((x - h) % 5); at < x + w; at += 5) { to.moveTo(at, y + h); to.lineTo(at + h, y); }
      to.stroke();
      to.restore();
    },
    text: (x, y, said, color, align = "left") => {
      to.fillStyle = color; to.textAlign = align; to.textBaseline = "middle";
      to.font = `12px ${fedactors.FONT}`;
      to.fillText(said, x, y);
    },
  };
};

fedactors.svgPen = (width, height, page) => {
  const parts = [];
  const escaped = (said) => said.replace(/[&<>"]/g, (letter) => `&#${letter.charCodeAt(0)};`);
  const number = (value) => String(Math.round(100 * value) / 100);
  const box = (x, y, w, h) => `x="${number(x)}" y="${number(y)}" width="${number(w)}" height="${number(h)}"`;
  const anchors = {left: "start", center: "middle", right: "end"};
  return {
    rect: (x, y, w, h, color) => parts.push(`<rect ${box(x, y, w, h)} fill="${color}"/>`),
    hatch: (x, y, w, h) => parts.push(`<rect ${box(x, y, w, h)} fill="url(#pause)"/>`),
    text: (x, y, said, color, align = "left") => parts.push(
      `<text x="${number(x)}" y="${number(y)}" fill="${color}" text-anchor="${anchors[align]}"`
      + ` dominant-baseline="central">${escaped(said)}</text>`),
    image: (x, y, w, h, data) => parts.push(`<image ${box(x, y, w, h)} href="${data}"/>`),
    size: () => parts.length,
    done: (ink) => `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}"`
      + ` viewBox="0 0 ${width} ${height}" font-size="12" font-family="${fedactors.FONT}">`
      + `<defs><pattern id="pause" width="5" height="5" patternUnits="userSpaceOnUse" patternTransform="rotate(45)">`
      + `<rect width="5" height="5" fill="${page}" fill-opacity="0.55"/>`
      + `<rect width="1" height="5" fill="${ink}" fill-opacity="0.7"/></pattern></defs>`
      + `<rect width="${width}" height="${height}" fill="${page}"/>${parts.join("")}</svg>`,
  };
};
