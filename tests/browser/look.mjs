// Opens one page in real Chromium and tells, as JSON, what is there: look.mjs FILE. What it means is the caller's.
import { readFileSync } from "node:fs";
import { pathToFileURL } from "node:url";
import { launch } from "./chromium.mjs";

const WIDTHS = [390, 1280];
const address = pathToFileURL(process.argv[2]).href;
let browser;
try {
  browser = await launch();
} catch (error) {
  console.log(JSON.stringify({ unavailable: `Chromium can't start: ${String(error).split("\n", 3).join(" ")}` }));
  process.exit(0);
}

async function open(options) {
  const context = await browser.newContext({ viewport: { width: 1280, height: 900 }, ...options });
  const page = await context.newPage();
  const heard = { console: [], requests: [], failed: [] };
  page.on("console", (message) => heard.console.push(`${message.type()}: ${message.text()}`));
  page.on("pageerror", (error) => heard.console.push(`error: ${error.message}`));
  page.on("request", (request) => heard.requests.push(request.url()));
  page.on("requestfailed", (request) => heard.failed.push(request.url()));
  await page.goto(address, { waitUntil: "load" });
  return { page, heard };
}

// Every chart: its size, how many points and error bars are drawn, the names in it that reach beyond its edge or overlap.
function figures() {
  const overlap = (one, other) => one.left < other.right - 1 && other.left < one.right - 1 && one.top < other.bottom - 3 && other.top < one.bottom - 3;
  return [...document.querySelectorAll("figure")].map((figure) => {
    const svg = figure.querySelector("svg");
    const place = figure.getBoundingClientRect();
    const data = JSON.parse(figure.querySelector("script").textContent);
    const points = svg.querySelectorAll('g[class^="points"] :is(path, circle)');
    const texts = [...svg.querySelectorAll("text.label, .mark text")].map((text) => ({ text: text.textContent, box: text.getBoundingClientRect() }));
    const marks = svg.querySelectorAll("line.knee, .knee line, line.gate, .gate line").length;
    return {
      anchor: data.anchor,
      label: svg.getAttribute("aria-label"),
      role: svg.getAttribute("role"),
      width: svg.getBoundingClientRect().width,
      height: svg.getBoundingClientRect().height,
      curves: svg.querySelectorAll('[class^="curve"] path, path[class^="curve"]').length,
      points: points.length,
      hollow: [...points].filter((point) => (point.getAttribute("fill") ?? point.parentElement.getAttribute("fill")) === "var(--paper)").length,
      bars: svg.querySelectorAll('.error-bar line').length,
      marks,
      labels: texts.map(({ text }) => text),
      outside: texts.filter(({ box }) => box.left < place.left - 1 || box.right > place.right + 1).map(({ text }) => text),
      overlapping: texts.filter(({ box }, index) => texts.slice(index + 1).some((other) => overlap(box, other.box))).map(({ text }) => text),
    };
  });
}

// Every table by its caption: of each cell what is shown, and the exact number behind it.
function tables() {
  return Object.fromEntries(
    [...document.querySelectorAll("table")].map((table) => [
      table.caption.innerText,
      [...table.tBodies[0].rows].map((row) =>
        [...row.cells].map((cell) => ({
          shown: (cell.querySelector("data") ?? cell).innerText.trim(),
          exact: cell.querySelector("data")?.value ?? "",
          interval: [...cell.querySelectorAll(".interval data")].map((end) => end.value),
        })),
      ),
    ]),
  );
}

// What reaches beyond the window though it doesn't scroll, and what is wider than the box that it stands in.
function overflowing() {
  const found = document.documentElement.scrollWidth > document.documentElement.clientWidth ? ["the page"] : [];
  for (const element of document.body.querySelectorAll("*")) {
    if (element.closest(".scroll table, pre, svg, nav .sections, details:not([open])") || element.matches(".scroll")) continue;
    const beyond = element.getBoundingClientRect().right > window.innerWidth + 1;
    if (beyond || element.scrollWidth > element.clientWidth + 1) {
      if (getComputedStyle(element).display !== "inline") found.push(`${element.tagName}: ${element.textContent.trim().slice(0, 60)}`);
    }
  }
  return found;
}

// Every part that is folded, opened.
async function unfold(page) {
  await page.evaluate(() => document.querySelectorAll("details").forEach((folded) => (folded.open = true)));
  await page.waitForTimeout(100); // the event `toggle` comes after this turn; its charts are drawn then
}

// What stands under the pointer at the middle of each chart's third point.
async function hovered(page, anchor) {
  const svg = page.locator(`#chart-${anchor} svg`);
  await svg.scrollIntoViewIfNeeded();
  const point = await page.evaluate((name) => {
    const [, , third] = document.querySelectorAll(`#chart-${name} g[class="points second"] :is(path, circle)`);
    const box = third.getBoundingClientRect();
    return { x: box.left + box.width / 2, y: box.top + box.height / 2 };
  }, anchor);
  await page.mouse.move(point.x, point.y);
  await page.waitForTimeout(50);
  return svg.evaluate((one) => [...one.querySelectorAll('[aria-label="tip"] tspan')].map((line) => line.textContent.replace("\u200b", "")));
}

// The file behind each link that downloads, as the browser saves it.
async function downloads(page) {
  const files = {};
  for (const link of await page.locator("nav .downloads a").all()) {
    const [download] = await Promise.all([page.waitForEvent("download"), link.click()]);
    files[download.suggestedFilename()] = readFileSync(await download.path(), "utf8");
  }
  return files;
}

const seen = { version: browser.version(), overflow: {} };
const { page, heard } = await open({});
Object.assign(seen, heard, {
  folded: await page.evaluate(() => [...document.querySelectorAll("details")].every((one) => !one.open)),
  decisive_px: await page.evaluate(() => Math.round(document.getElementById("details").getBoundingClientRect().top + scrollY)),
  hover: await hovered(page, "latency-throughput"),
  downloads: await downloads(page),
  light: await page.evaluate(() => getComputedStyle(document.body).backgroundColor),
});
await page.evaluate(() => (location.hash = "#knee"));
await page.waitForTimeout(50);
seen.opened = await page.evaluate(() => document.getElementById("knee").open);
await unfold(page);
Object.assign(seen, {
  figures: await page.evaluate(figures),
  tables: await page.evaluate(tables),
  headings: await page.evaluate(() => [...document.querySelectorAll("h1, h2, h3")].map((one) => Number(one.tagName[1]))),
  landmarks: await page.evaluate(() => ["header", "nav", "main", "footer"].filter((name) => document.querySelectorAll(`body > ${name}`).length === 1)),
  sticky: await page.evaluate(() => (scrollTo(0, 3000), document.querySelector("nav").getBoundingClientRect().top)),
});
for (const width of WIDTHS) {
  await page.setViewportSize({ width, height: 900 });
  await page.waitForTimeout(100);
  seen.overflow[width] = await page.evaluate(overflowing);
  if (width === WIDTHS[0]) seen.narrow_figures = await page.evaluate(figures);
}
Object.assign(seen, heard);
const printed = (await page.pdf({ preferCSSPageSize: true })).toString("latin1");
seen.pdf_pages = (printed.match(/\/Type\s*\/Page\b/g) ?? []).length;
const rules = readFileSync(new URL("./node_modules/axe-core/axe.min.js", import.meta.url), "utf8");
seen.accessibility = {};
for (const colorScheme of ["light", "dark"]) {
  const { page: shown } = await open({ colorScheme, bypassCSP: true });
  if (colorScheme === "dark") seen.dark = await shown.evaluate(() => getComputedStyle(document.body).backgroundColor);
  await unfold(shown);
  await shown.evaluate(rules);
  const { violations } = await shown.evaluate(() => window.axe.run());
  seen.accessibility[colorScheme] = violations.map((one) => `${one.id}: ${one.help}: ${one.nodes[0].html}`);
}
await browser.close();
console.log(JSON.stringify(seen));
