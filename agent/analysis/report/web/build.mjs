// Makes app.js out of src/ and the libraries, and LICENSES.txt out of theirs. `scripts/vendor-web` runs it.
import { build } from "esbuild";
import { createHash } from "node:crypto";
import { readFileSync, readdirSync, writeFileSync } from "node:fs";

const made = await build({
  entryPoints: ["src/main.js"],
  bundle: true,
  minify: true,
  charset: "ascii",
  format: "iife",
  target: "es2022",
  legalComments: "none",
  metafile: true,
  write: false,
});

const program = made.outputFiles[0].text.replaceAll("</", "<\\/");
const sources = readdirSync("src").sort();
const digest = createHash("sha256");
for (const name of sources) digest.update(readFileSync(`src/${name}`));
writeFileSync(
  "app.js",
  `/* made by scripts/vendor-web from src/ (sha256 ${digest.digest("hex")}); licences: LICENSES.txt */\n${program}`,
);

const packages = new Set(
  Object.keys(made.metafile.inputs)
    .filter((path) => path.startsWith("node_modules/"))
    .map((path) => path.split("/")[1]),
);
const licences = [...packages].sort().map((name) => {
  const { version } = JSON.parse(readFileSync(`node_modules/${name}/package.json`, "utf8"));
  return `${name} ${version}\n\n${readFileSync(`node_modules/${name}/LICENSE`, "utf8").trim()}\n`;
});
writeFileSync("LICENSES.txt", licences.join(`\n${"-".repeat(78)}\n\n`));
