// Opens a page in real Chromium and lets it send requests to another origin: foreign.mjs PAGE REQUESTS. Tells, as JSON,
// what the page could learn of each answer. REQUESTS: [{url, method, headers, body, mode}].
import { launch } from "./chromium.mjs";

let browser;
try {
  browser = await launch();
} catch (error) {
  console.log(JSON.stringify({ unavailable: `Chromium can't start: ${String(error).split("\n", 3).join(" ")}` }));
  process.exit(0);
}
const page = await browser.newPage();
await page.goto(process.argv[2], { waitUntil: "load" });
const seen = await page.evaluate(async (requests) => {
  const learned = [];
  for (const { url, ...options } of requests) {
    try {
      const answer = await fetch(url, options);
      learned.push(`${answer.type} ${answer.status} ${(await answer.text()).slice(0, 200)}`.trim());
    } catch (error) {
      learned.push(error.name);
    }
  }
  return learned;
}, JSON.parse(process.argv[3]));
console.log(JSON.stringify({ learned: seen }));
await browser.close();
