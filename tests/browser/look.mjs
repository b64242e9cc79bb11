// Opens one page in real Chromium and tells, as JSON, what is there: look.mjs FILE. What it means is the caller's.
import { readFileSync } from "node:fs";
import { pathToFileURL } from "node:url";
import { launch } from "./chromium.mjs";

const WIDTHS = [375, 1280];
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

// Every figure with its points, by curve, and the names in it that reach beyond its edge.
function figures() {
  return [...document.querySelectorAll("svg")].map((svg) => {
    const place = svg.getBoundingClientRect();
    const points = {};
    for (const symbol of svg.querySelectorAll(".symbol:has(title)")) {
      const curve = symbol.querySelector("title").textContent.split(" at ")[0];
      points[curve] = (points[curve] ?? 0) + 1;
    }
    const outside = [...svg.querySelectorAll("text")].filter((text) => {
      const written = text.getBoundingClientRect();
      return written.left < place.left - 1 || written.right > place.right + 1;
    });
    return {
      title: svg.querySelector("title").textContent,
      width: place.width,
      height: place.height,
      points,
      hollow: svg.querySelectorAll(".symbol.void").length,
      outside: outside.map((text) => text.textContent),
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
    if (element.closest(".scroll table, pre, svg") || element.matches(".scroll")) continue;
    const beyond = element.getBoundingClientRect().right > window.innerWidth + 1;
    if (beyond || element.scrollWidth > element.clientWidth + 1) {
      if (getComputedStyle(element).display !== "inline") found.push(`${element.tagName}: ${element.textContent.trim().slice(0, 60)}`);
    }
  }
  return found;
}

const seen = { version: browser.version(), overflow: {} };
const { page, heard } = await open({});
Object.assign(seen, heard, {
  figures: await page.evaluate(figures),
  tables: await page.evaluate(tables),
  headings: await page.evaluate(() => [...document.querySelectorAll("h1, h2, h3")].map((one) => Number(one.tagName[1]))),
  landmarks: await page.evaluate(() => ["header", "nav", "main", "footer"].filter((name) => document.querySelectorAll(`body > ${name}`).length === 1)),
  light: await page.evaluate(() => getComputedStyle(document.body).backgroundColor),
});
for (const width of WIDTHS) {
  await page.setViewportSize({ width, height: 900 });
  seen.overflow[width] = await page.evaluate(overflowing);
}
const printed = (await page.pdf({ preferCSSPageSize: true })).toString("latin1");
seen.pdf_pages = (printed.match(/\/Type\s*\/Page\b/g) ?? []).length;
const rules = readFileSync(new URL("./node_modules/axe-core/axe.min.js", import.meta.url), "utf8");
seen.accessibility = {};
for (const colorScheme of ["light", "dark"]) {
  const { page: shown } = await open({ colorScheme, bypassCSP: true });
  if (colorScheme === "dark") seen.dark = await shown.evaluate(() => getComputedStyle(document.body).backgroundColor);
  await shown.evaluate(rules);
  const { violations } = await shown.evaluate(() => window.axe.run());
  seen.accessibility[colorScheme] = violations.map((one) => `${one.id}: ${one.help}: ${one.nodes[0].html}`);
}
await browser.close();
console.log(JSON.stringify(seen));
