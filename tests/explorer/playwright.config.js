// Real Chromium of the system, two workers. Two more tries, which the report names ("flaky"): the machine may be busy. Times
// are those of a machine that does much else; nothing waits for them when all is well.
import { defineConfig } from "@playwright/test";

export default defineConfig({
  testDir: ".",
  testMatch: "*.test.js",
  timeout: 120_000,
  expect: { timeout: 30_000 },
  workers: 2,
  fullyParallel: true,
  retries: 2,
  reporter: [["./report.js"]],
  outputDir: process.env.EXPLORER_TEST_OUTPUT ?? "results",
  use: {
    viewport: { width: 1280, height: 800 },
    actionTimeout: 30_000,
    launchOptions: {
      executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium",
      args: ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync"],
    },
  },
});
