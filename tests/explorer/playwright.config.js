// Real Chromium of the system, two workers. One try: what fails sometimes is a fault. Times only end tests that hang, on the slowest
// machine beside whatever else; nothing waits for them when all is well.
import { defineConfig } from "@playwright/test";

export default defineConfig({
  testDir: ".",
  testMatch: "*.test.js",
  timeout: 900_000,
  expect: { timeout: 180_000 },
  workers: 2,
  fullyParallel: true,
  retries: 0,
  reporter: [["./report.js"]],
  outputDir: process.env.EXPLORER_TEST_OUTPUT ?? "results",
  use: {
    viewport: { width: 1280, height: 800 },
    actionTimeout: 180_000,
    launchOptions: {
      executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium",
      args: ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync"],
    },
  },
});
