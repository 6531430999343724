// Builds the explorer's page into the folder that the server embeds.
//
// File names carry no hashes, so that a rebuild changes files and not their list; the server sends ETags.
import { defineConfig } from "vite";

// CodeMirror writes its styles into a <style> element, which the page's content policy refuses. Constructed style
// sheets are allowed, and style-mod has them, for shadow roots only: this lets it use them for the document as well.
const constructedStyleSheets = {
  name: "constructed-style-sheets",
  transform(code, id) {
    if (!id.includes("/style-mod/")) return null;
    const changed = code.replace("if (!root.head && root.adoptedStyleSheets", "if (root.adoptedStyleSheets");
    if (changed === code) throw new Error("style-mod has changed: see vite.config.js");
    return { code: changed, map: null };
  },
};

export default defineConfig({
  base: "/_explorer/assets/",
  plugins: [constructedStyleSheets],
  oxc: { jsx: { runtime: "automatic", importSource: "preact" } },
  build: {
    target: "es2022",
    outDir: process.env.EXPLORER_OUT ?? "../crates/explorer/assets",
    emptyOutDir: true,
    assetsInlineLimit: 0,
    assetsDir: "",
    modulePreload: { polyfill: false },
    cssCodeSplit: false,
    reportCompressedSize: false,
    chunkSizeWarningLimit: 600,
    rollupOptions: {
      output: {
        entryFileNames: "app.js",
        chunkFileNames: "[name].js",
        assetFileNames: "[name][extname]",
      },
    },
  },
});
