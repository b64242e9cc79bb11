// Bundles the parts of Observable Plot that the report draws with: seatrial/report/charts/plot.min.js, not committed.
// The licences of all that is inside stand at its head, since every report carries the file on.
import { readFileSync, renameSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { build } from "esbuild";

const CLAIM = /^copyright .*\d{4}/i;
const OUT = "seatrial/report/charts/plot.min.js";
const ENTRY = `export {
  areaY, axisX, axisY, dot, gridY, line, lineY, plot, pointer, rect, ruleX, ruleY, text, tip,
} from "@observablehq/plot";`;

const { outputFiles, metafile } = await build({
  stdin: { contents: ENTRY, resolveDir: "." },
  bundle: true,
  minify: true,
  format: "iife",
  globalName: "Plot",
  target: "es2022",
  charset: "ascii",
  legalComments: "none",
  metafile: true,
  write: false,
  logLevel: "error",
});

function packageOf(file) {
  const [, path] = file.split("node_modules/");
  return path?.split("/").slice(0, path.startsWith("@") ? 2 : 1).join("/");
}

const used = Object.entries(Object.values(metafile.outputs)[0].inputs).filter(([, { bytesInOutput }]) => bytesInOutput > 0);
const packages = [...new Set(used.map(([file]) => packageOf(file)).filter(Boolean))].sort();
const byLicence = new Map(); // the terms, then who claims a copyright under them
for (const name of packages) {
  const folder = join("node_modules", name);
  const { version } = JSON.parse(readFileSync(join(folder, "package.json"), "utf8"));
  const lines = readFileSync(join(folder, "LICENSE"), "utf8").split("\n").map((line) => line.trim());
  const claims = lines.filter((line) => CLAIM.test(line)).join("; ");
  const terms = lines.filter((line) => line && !CLAIM.test(line)).join("\n");
  byLicence.set(terms, [...(byLicence.get(terms) ?? []), `${name} ${version}: ${claims || "no copyright is claimed"}`]);
}
const notice = [...byLicence].map(([terms, names]) => `${names.join("\n")}\n\n${terms}`).join("\n\n");
const ascii = notice.replaceAll("*/", "* /").replace(/[^\x20-\x7e\n]/g, "?");
writeFileSync(`${OUT}.partial`, `/*! Bundled by scripts/build_charts.mjs from:\n${ascii}\n*/\n${outputFiles[0].text}`);
renameSync(`${OUT}.partial`, OUT);
