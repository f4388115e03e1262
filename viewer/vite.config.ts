import { createHash } from "node:crypto";
import { defineConfig, type Plugin } from "vite";

const DATA_MARK = "<!--devsan:data-->";

// Makes one file of the page: its script and style are written into it, and its policy names the script by its digest,
// so that no other script can run and nothing can be fetched. The script comes after the data it reads.
function oneFile(): Plugin {
  return {
    name: "one-file",
    enforce: "post",
    generateBundle(_options, bundle) {
      const page = bundle["index.html"];
      if (page?.type !== "asset") throw new Error("there is no page");
      let [script, style] = ["", ""];
      for (const [name, part] of Object.entries(bundle)) {
        if (part === page) continue;
        if (part.type === "chunk") script += part.code;
        else style += String(part.source);
        delete bundle[name];
      }
      if (/<\/script/i.test(script) || /<\/style/i.test(style)) throw new Error("an element would end too early");
      const digest = createHash("sha256").update(script).digest("base64");
      const policy =
        `default-src 'none'; script-src 'sha256-${digest}'; style-src 'unsafe-inline'; ` +
        "img-src data:; base-uri 'none'; form-action 'none'";
      page.fileName = "report.html";
      page.source = String(page.source)
        .replace(/\s*<script type="module"[^>]*><\/script>/, "")
        .replace(/\s*<link rel="stylesheet"[^>]*>/, "")
        .replace("POLICY", () => policy)
        .replace("</head>", () => `<style>${style}</style>\n  </head>`)
        .replace(DATA_MARK, () => `${DATA_MARK}\n    <script>${script}</script>`);
    },
  };
}

export default defineConfig({
  plugins: [oneFile()],
  build: {
    target: ["chrome123", "firefox120", "safari17.5"], // the first with light-dark()
    outDir: "dist",
    cssCodeSplit: false,
    modulePreload: false,
    assetsInlineLimit: Infinity,
    rollupOptions: { output: { format: "iife" } },
  },
  test: { include: ["test/**/*.test.ts"] },
} as import("vite").UserConfig);
