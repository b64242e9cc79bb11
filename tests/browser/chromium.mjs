// Starts a real Chromium: the one on PATH, else the one that lies inside @sparticuz/chromium.
import { execFileSync } from "node:child_process";
import { existsSync, mkdirSync, renameSync, rmSync } from "node:fs";
import { join } from "node:path";
import { chromium as driver } from "playwright-core";

const FLAGS = ["--no-sandbox", "--disable-dev-shm-usage"]; // tests run as root in containers with a small /dev/shm
const UNPACKED = join(import.meta.dirname, "node_modules", ".chromium");

function onPath() {
  for (const name of ["chromium", "chromium-browser", "google-chrome"]) {
    for (const folder of (process.env.PATH ?? "").split(":")) {
      const file = join(folder, name);
      if (existsSync(file)) return file;
    }
  }
  return undefined;
}

// Unpacks into a folder of its own and moves it into place whole, so that a run that is killed leaves nothing broken.
async function unpacked() {
  const program = join(UNPACKED, "chromium");
  if (existsSync(program)) return program;
  const partial = `${UNPACKED}-${process.pid}`;
  mkdirSync(partial, { recursive: true });
  const before = process.env.TMPDIR;
  process.env.TMPDIR = partial; // where the package unpacks to
  try {
    const { default: packed, inflate } = await import("@sparticuz/chromium");
    await packed.executablePath();
    await inflate(join(import.meta.dirname, "node_modules/@sparticuz/chromium/bin/al2023.tar.br"));
  } finally {
    if (before === undefined) delete process.env.TMPDIR;
    else process.env.TMPDIR = before;
  }
  try {
    renameSync(partial, UNPACKED);
  } catch (error) {
    if (!existsSync(program)) throw error;
    rmSync(partial, { recursive: true }); // another run was faster
  }
  return program;
}

// The package brings libraries for machines that lack Chromium's; a machine's own come first.
function environment(program) {
  const missing = execFileSync("ldd", [program], { encoding: "utf8" }).includes("not found");
  const libraries = join(UNPACKED, "al2023", "lib");
  return missing ? { ...process.env, LD_LIBRARY_PATH: libraries } : process.env;
}

export async function launch() {
  const installed = onPath();
  if (installed !== undefined) {
    try {
      return await driver.launch({ executablePath: installed, args: FLAGS });
    } catch {
      // a launcher without a browser behind it, as Ubuntu has one: the package's own is left
    }
  }
  const program = await unpacked();
  return driver.launch({ executablePath: program, args: FLAGS, env: environment(program) });
}
