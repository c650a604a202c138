// Writes what the bundle was built from: the SHA-256 of every source, so that a test can tell whether it is stale.
import { createHash } from "node:crypto";
import { readFileSync, readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";

const OUT = "../src/mercer/studio/static";
const hash = (file) => createHash("sha256").update(readFileSync(file)).digest("hex");
const walk = (folder) =>
  readdirSync(folder, { withFileTypes: true }).flatMap((entry) =>
    entry.isDirectory() ? walk(join(folder, entry.name)) : [join(folder, entry.name)],
  );
const sources = [...walk("src"), ...walk("public"), "package.json", "package-lock.json", "tsconfig.json", "vite.config.mjs", "manifest.mjs"];
const built = ["index.html", "studio.css", "studio.js"];
const manifest = {
  sources: Object.fromEntries(sources.map((f) => [f.replaceAll("\\", "/"), hash(f)]).sort()),
  built: Object.fromEntries(built.map((f) => [f, hash(join(OUT, f))])),
};
writeFileSync(join(OUT, "manifest.json"), JSON.stringify(manifest, null, 1) + "\n");
