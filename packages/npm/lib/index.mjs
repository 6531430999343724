// The same functions for `import`. Vitest's default configuration has no global hooks (`globals: false`): they are imported from it,
// which only a module can do, and only while Vitest runs.

import astrarium from "./index.js";

const vitest = process.env.VITEST ? await import("vitest").catch(() => undefined) : undefined;

export const { KEY, Server, binary, start } = astrarium;

export function useServer({ before = vitest?.beforeAll, after = vitest?.afterAll, ...options } = {}) {
  return astrarium.useServer({ before, after, ...options });
}
