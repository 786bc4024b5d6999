// Builds the front end: `node build.mjs [FOLDER]` writes report.js and report.css (to dist), `node build.mjs --tests` the unit tests.
import { build } from "esbuild";
import { readdirSync, readFileSync, writeFileSync, existsSync, mkdirSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const here = dirname(fileURLToPath(import.meta.url));
process.chdir(here);

/** The licences of the packages whose files are in the bundle: each text once, before it the packages that it is of. */
function licences(inputs) {
  const packages = new Set();
  for (const input of Object.keys(inputs)) {
    const found = /^node_modules\/((?:@[^/]+\/)?[^/]+)\//.exec(input);
    if (found) packages.add(found[1]);
  }
  const texts = new Map();
  for (const name of [...packages].sort()) {
    const folder = join("node_modules", name);
    const file = ["LICENSE", "LICENSE.md", "LICENSE.txt"].map((one) => join(folder, one)).find(existsSync);
    if (!file) throw new Error(`${name} has no licence`);
    const version = JSON.parse(readFileSync(join(folder, "package.json"), "utf8")).version;
    const text = readFileSync(file, "utf8").trim().replace(/\r\n/g, "\n");
    texts.set(text, [...(texts.get(text) ?? []), `${name} ${version}`]);
  }
  const parts = [...texts].map(([text, names]) => `${names.join(", ")}:\n\n${text}`);
  return `/*!\nThis file contains parts of these libraries.\n\n${parts.join("\n\n----\n\n")}\n*/\n`.replaceAll("*/\n*/", "*/");
}

async function front(folder) {
  mkdirSync(folder, { recursive: true });
  const common = { bundle: true, minify: true, write: false, metafile: true, charset: "utf8", legalComments: "none", logLevel: "warning" };
  const script = await build({ ...common, entryPoints: ["src/main.ts"], format: "iife", target: ["es2020"] });
  const style = await build({ ...common, entryPoints: ["src/style/report.css"], target: ["chrome100", "firefox100", "safari15"] });
  for (const [name, result] of [["report.js", script], ["report.css", style]]) {
    const text = licences(result.metafile.inputs) + result.outputFiles[0].text;
    // They stand inside of elements, which these would end.
    if (/<\/(script|style)|<!--/i.test(text)) throw new Error(`${name} would end its element`);
    writeFileSync(join(folder, name), text);
    console.log(`${join(folder, name)}: ${text.length} bytes`);
  }
}

async function tests() {
  const names = readdirSync("test").filter((name) => name.endsWith(".test.ts")).sort();
  const contents = names.map((name) => `import "./test/${name}";`).join("\n");
  await build({
    stdin: { contents, resolveDir: here },
    bundle: true, format: "esm", platform: "node", target: "node18", outfile: "build/tests.mjs", logLevel: "warning",
  });
}

const argument = process.argv[2];
await (argument === "--tests" ? tests() : front(argument ?? "dist"));
