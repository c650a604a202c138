// One module and one style sheet, without hashes in their names, so that a build gives the same bytes every time.
import { defineConfig } from "vite";

export default defineConfig({
  build: {
    outDir: "../src/mercer/studio/static",
    emptyOutDir: true,
    target: "es2022",
    cssCodeSplit: false,
    modulePreload: false,
    lib: { entry: "src/main.ts", formats: ["es"], fileName: () => "studio.js", cssFileName: "studio" },
    rollupOptions: { output: { codeSplitting: false, minify: true } },
  },
  publicDir: "public",
});
