// Draws the page's charts with Observable Plot from the JSON beside each, and opens what a link points into.
// Colours are those of the page's style, so that a change of scheme and print need no drawing anew.
"use strict";
(() => {
  const COLOURS = { first: "var(--first)", second: "var(--second)", third: "var(--third)", predicted: "var(--predicted)" };
  const DASHES = { first: null, second: "7 3", third: "2 3", predicted: "5 4" };
  const SYMBOLS = { first: "circle", second: "square", third: "triangle", predicted: "diamond" };
  const HEIGHTS = { wide: 370, low: 170, narrow: 250 };
  const LETTER = 6.4; // mean width of a letter of the labels, px
  const LINE = 14; // height of a label, px

  const colour = (series) =>
    series.shade === undefined
      ? COLOURS[series.style]
      : `color-mix(in oklab, var(--shade-low), var(--shade-high) ${Math.round(series.shade * 100)}%)`;
  const known = (series) => series.points.filter((point) => point.y !== undefined);
  const number = (value) => (Math.abs(value) >= 10000 ? `${+(value / 1000).toFixed(1)}k` : value.toLocaleString("en-US"));

  // The highest value that the axis must show: all of what was measured, and a bound unless it flattens the curve.
  function top(chart) {
    const measured = chart.series.filter((series) => series.style !== "predicted");
    const most = Math.max(...(measured.length ? measured : chart.series).flatMap((series) => known(series).map((point) => point.y)), 0);
    const others = [
      ...chart.series.flatMap((series) => series.points.flatMap((point) => [point.y, point.high])),
      ...chart.bands.flatMap((band) => band.points.map((point) => point[2])),
      ...chart.outlines.flatMap((outline) => outline.points.map((point) => point[1])),
      ...chart.regions.filter((region) => !region.upright).map((region) => region.bound * 1.05),
    ];
    return Math.max(most, ...others.filter((value) => value !== undefined && value <= most * 1.6)) * 1.04 || 1;
  }

  function domain(chart) {
    const places = [
      ...chart.series.flatMap((series) => series.points.flatMap((point) => [point.x, point.x_low, point.x_high])),
      ...chart.outlines.flatMap((outline) => outline.points.map((point) => point[0])),
      ...chart.marks.filter((mark) => mark.kind !== "level").map((mark) => mark.at),
    ].filter((value) => value !== undefined);
    const [low, high] = [Math.min(...places), Math.max(...places)];
    if (chart.x.scale === "log2") return [low / 1.25, high * 1.25];
    if (chart.x.scale === "log10") return [low / 1.05, high * 1.05];
    return [0, high * 1.04];
  }

  // 1, 2 and 5 of every power of ten within the axis.
  function decades([low, high]) {
    const powers = Array.from({ length: Math.ceil(Math.log10(high / low)) + 2 }, (_, index) => 10 ** (Math.floor(Math.log10(low)) + index));
    return powers.flatMap((power) => [power, 2 * power, 5 * power]).filter((tick) => tick >= low && tick <= high);
  }

  // Ticks of a logarithmic axis that don't touch, the highest kept.
  function spaced(ticks, [low, high], width) {
    const at = (value) => (Math.log(value / low) / Math.log(high / low)) * width;
    const kept = [];
    for (const tick of [...ticks].sort((one, other) => other - one)) {
      if (kept.length === 0 || at(kept.at(-1)) - at(tick) >= 34) kept.push(tick);
    }
    return kept.reverse();
  }

  // Runs of points that are joined: neither over a gap nor to a void point.
  function runs(series) {
    const found = [[]];
    for (const point of series.points) {
      if (point.y === undefined || point.void) found.push([]);
      else found.at(-1).push(point);
    }
    return found.filter((run) => run.length > 0);
  }

  const overlap = (one, other) =>
    one.left < other.right && other.left < one.right && one.top < other.bottom && other.top < one.bottom;

  // Where a label of this size may stand beside a point: near it first, farther away with a line to it.
  function* places(x, y, width) {
    for (const distance of [8, 20, 34, 50, 70]) {
      for (const [across, down] of [[0, -1], [1, 0], [-1, 0], [0, 1], [0.8, -0.8], [-0.8, -0.8], [0.8, 0.8], [-0.8, 0.8]]) {
        const middle = x + across * (distance + width / 2);
        const centre = y + down * (distance + LINE / 2 - 3);
        yield { left: middle - width / 2, right: middle + width / 2, top: centre - LINE / 2, bottom: centre + LINE / 2, far: distance > 20 };
      }
    }
  }

  // A mark of Plot that names points: those that must be named first, others only where there is room.
  function labels(named, taken, curves) {
    return (_, { scales, x, y }, __, { width, height, marginLeft, marginRight, marginTop, marginBottom }, { document }) => {
      const group = document.createElementNS("http://www.w3.org/2000/svg", "g");
      group.setAttribute("class", "labels");
      const frame = { left: marginLeft + 1, right: width - marginRight + 12, top: marginTop - 14, bottom: height - marginBottom - 2 };
      const boxes = taken.flatMap((point) => {
        const around = { left: x(point.x) - 6, right: x(point.x) + 6, top: y(point.y) - 6, bottom: y(point.y) + 6 };
        const upright = { ...around, left: x(point.x) - 4, right: x(point.x) + 4, top: y(point.high ?? point.y), bottom: y(point.low ?? point.y) };
        const level = { left: x(point.x_low ?? point.x), right: x(point.x_high ?? point.x), top: y(point.y) - 2, bottom: y(point.y) + 2 };
        return [around, upright, level];
      });
      for (const run of curves) {
        for (let index = 1; index < run.length; index += 1) {
          const [one, other] = [run[index - 1], run[index]];
          const steps = Math.ceil(Math.hypot(x(other.x) - x(one.x), y(other.y) - y(one.y)) / 6);
          for (let step = 1; step < steps; step += 1) {
            const part = step / steps;
            const [px, py] = [x(one.x) + part * (x(other.x) - x(one.x)), y(one.y) + part * (y(other.y) - y(one.y))];
            boxes.push({ left: px - 2, right: px + 2, top: py - 2, bottom: py + 2 });
          }
        }
      }
      for (const { at, value, label, strong } of [...named].sort((one, other) => other.strong - one.strong)) {
        const [px, py] = [x(at), y(value)];
        const size = label.length * LETTER + 4;
        const free = [...places(px, py, size)].find(
          (place) =>
            place.left >= frame.left && place.right <= frame.right && place.top >= frame.top && place.bottom <= frame.bottom &&
            (strong || !place.far) && !boxes.some((box) => overlap(box, place)),
        );
        if (free === undefined) continue;
        boxes.push(free);
        if (free.far) {
          const line = group.appendChild(document.createElementNS(group.namespaceURI, "line"));
          const end = { x: Math.min(Math.max(px, free.left), free.right), y: py < free.top ? free.top : Math.min(py, free.bottom) };
          for (const [name, amount] of Object.entries({ x1: px, y1: py, x2: end.x, y2: end.y })) line.setAttribute(name, amount.toFixed(1));
          line.setAttribute("class", "leader");
        }
        const text = group.appendChild(document.createElementNS(group.namespaceURI, "text"));
        text.setAttribute("x", ((free.left + free.right) / 2).toFixed(1));
        text.setAttribute("y", (free.bottom - 3).toFixed(1));
        text.setAttribute("text-anchor", "middle");
        text.setAttribute("class", strong ? "label strong" : "label");
        text.textContent = label;
      }
      return group;
    };
  }

  function regionMarks(chart, [left, right], most) {
    return chart.regions.flatMap((region) => {
      const [low, high] = region.sense === "at_most" ? [0, region.bound] : [region.bound, Infinity];
      const edge = { stroke: "var(--good)", strokeDasharray: "6 4", strokeWidth: 1.3, className: "bound" };
      if (region.upright) {
        if (low >= right) return [];
        const area = { x1: low, x2: Math.min(high, right), y1: 0, y2: most };
        return [Plot.rect([area], { ...ends(), fill: "var(--good)", fillOpacity: 0.07, className: "region" }), Plot.ruleX([region.bound].filter((at) => at <= right), edge)];
      }
      if (low >= most) return [];
      const area = { x1: left, x2: right, y1: low, y2: Math.min(high, most) };
      return [Plot.rect([area], { ...ends(), fill: "var(--good)", fillOpacity: 0.07, className: "region" }), Plot.ruleY([region.bound].filter((value) => value <= most), edge)];
    });
  }

  const ends = () => ({ x1: "x1", x2: "x2", y1: "y1", y2: "y2" });

  function seriesMarks(series, most) {
    const stroke = colour(series);
    const points = known(series).filter((point) => point.y <= most);
    const style = { stroke, strokeWidth: series.style === "predicted" ? 1.5 : 2, strokeDasharray: series.shade === undefined ? DASHES[series.style] : null };
    const barred = points.filter((point) => point.low !== undefined || point.high !== undefined);
    const wide = points.filter((point) => point.x_low !== undefined && point.x_high !== undefined);
    return [
      ...(series.filled ? runs(series).map((run) => Plot.areaY(run, { x: "x", y: "y", fill: stroke, fillOpacity: 0.15, clip: true })) : []),
      ...runs(series).map((run) => Plot.lineY(run, { x: "x", y: "y", ...style, clip: true, className: `curve ${series.style}` })),
      Plot.ruleX(barred, { x: "x", y1: (point) => point.low ?? point.y, y2: (point) => Math.min(point.high ?? point.y, most), stroke, strokeWidth: 1.3, marker: "tick-x", className: "error-bar" }),
      Plot.ruleY(wide, { y: "y", x1: "x_low", x2: "x_high", stroke, strokeWidth: 1.3, marker: "tick-y", className: "error-bar" }),
      ...(series.marked
        ? [Plot.dot(points, { x: "x", y: "y", r: 4, symbol: SYMBOLS[series.style], stroke, strokeWidth: 1.5, fill: (point) => (point.void || series.style === "predicted" ? "var(--paper)" : stroke), className: `points ${series.style}` })]
        : []),
    ];
  }

  function markLines(chart) {
    const inside = chart.marks.filter((mark) => mark.kind !== "level");
    const levels = chart.marks.filter((mark) => mark.kind === "level");
    return [
      Plot.ruleX(levels, { x: "at", stroke: "var(--rule)" }),
      Plot.text(levels, { x: "at", text: "label", frameAnchor: "top", textAnchor: "start", dx: 3, dy: -13, fill: "var(--quiet)", className: "mark" }),
      ...inside.flatMap((mark, row) => {
        const stroke = mark.kind === "knee" ? "var(--knee)" : "var(--text)";
        return [
          Plot.ruleX([mark], { x: "at", stroke, strokeWidth: 1.5, strokeDasharray: mark.kind === "gate" ? "2 3" : null, className: mark.kind }),
          Plot.text([mark], { x: "at", text: "label", frameAnchor: "top", dy: -10 - 14 * row, fill: stroke, fontWeight: 600, className: "mark" }),
        ];
      }),
    ];
  }

  function drawn(chart, width) {
    const [left, right] = domain(chart);
    const most = chart.y.percent ? 1 : top(chart);
    const logarithmic = chart.x.scale !== "linear";
    const sides = { marginLeft: 52, marginRight: 18, marginTop: chart.marks.length ? 36 : 22, marginBottom: 40 };
    const inner = width - sides.marginLeft - sides.marginRight;
    const hovered = chart.series.flatMap(known).filter((point) => point.y <= most);
    const named = [
      ...hovered.filter((point) => point.label).map((point) => ({ at: point.x, value: point.y, label: point.label, strong: point.strong })),
      ...chart.dots.map((dot) => ({ at: dot.x, value: dot.y, label: dot.label, strong: true })),
    ];
    return Plot.plot({
      width,
      height: HEIGHTS[chart.size],
      ...sides,
      style: { background: "none", color: "var(--text)", fontSize: "12px", fontFamily: "inherit", overflow: "visible" },
      ariaLabel: chart.title,
      ariaDescription: chart.description,
      x: { type: logarithmic ? "log" : "linear", base: chart.x.scale === "log2" ? 2 : 10, domain: [left, right] },
      y: { domain: [0, most] },
      marks: [
        ...regionMarks(chart, [left, right], most),
        Plot.gridY({ ticks: 5, stroke: "var(--rule)", strokeOpacity: 1 }),
        Plot.axisY({ ticks: 5, tickSize: 0, label: chart.y.label, labelArrow: "none", color: "var(--quiet)", tickFormat: chart.y.percent ? (value) => `${Math.round(value * 100)} %` : number }),
        Plot.axisX({
          ...(logarithmic ? { ticks: spaced(chart.x.ticks.length ? chart.x.ticks : decades([left, right]), [left, right], inner) } : { ticks: Math.max(2, Math.round(inner / 90)) }),
          label: chart.x.label, labelAnchor: "center", labelArrow: "none", color: "var(--quiet)", tickFormat: number,
        }),
        Plot.ruleY([0], { stroke: "var(--quiet)" }),
        ...chart.bands.map((band) => Plot.areaY(band.points, { x: "0", y1: "1", y2: (point) => Math.min(point[2], most), fill: "var(--predicted)", fillOpacity: 0.16, clip: true, className: "band" })),
        ...chart.outlines.map((outline) => Plot.line(outline.points, { x: "0", y: (point) => Math.min(point[1], most), stroke: "none", fill: "var(--predicted)", fillOpacity: 0.16, clip: true, className: "band" })),
        ...markLines(chart),
        ...[...chart.series].reverse().flatMap((series) => seriesMarks(series, most)),
        Plot.dot(chart.dots, { x: "x", y: "y", r: 7, symbol: "diamond", fill: "var(--knee)", className: "knee" }),
        labels(named, [...hovered, ...chart.dots], chart.series.filter((series) => series.style !== "predicted").flatMap(runs)),
        Plot.tip(hovered, Plot.pointer({ x: "x", y: "y", title: "hover", fill: "var(--panel)", stroke: "var(--quiet)", fontSize: 13, lineHeight: 1.3 })),
      ],
    });
  }

  // A chart in a closed part of the page has no width; it is drawn at that of the page and again when opened.
  function draw(figure) {
    const room = figure.clientWidth || document.querySelector("main").clientWidth;
    const width = Math.max(280, Math.floor(room));
    if (figure.dataset.width === String(width)) return;
    figure.dataset.width = String(width);
    const svg = drawn(JSON.parse(figure.querySelector("script").textContent), width);
    svg.setAttribute("role", "img"); // named and described as a whole, so its parts carry no names
    svg.querySelectorAll("[aria-label]").forEach((part) => part.removeAttribute("aria-label"));
    figure.querySelector(".chart").replaceChildren(svg);
  }

  const drawAll = () => document.querySelectorAll("figure").forEach(draw);

  function openTarget() {
    const target = document.getElementById(decodeURIComponent(location.hash.slice(1)));
    const folded = target?.closest("details");
    if (folded) {
      folded.open = true;
      target.scrollIntoView();
    }
  }

  drawAll();
  openTarget();
  addEventListener("resize", drawAll);
  addEventListener("hashchange", openTarget);
  document.addEventListener("toggle", (event) => event.target.querySelectorAll("figure").forEach(draw), true);
  addEventListener("beforeprint", () => document.querySelectorAll("details").forEach((folded) => folded.setAttribute("open", "")));
})();
