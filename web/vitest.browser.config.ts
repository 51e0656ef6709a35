// Tests of dist/report.html in Chromium, two files at a time and without haste:
// the machine may be busy, so that no limit here is a statement about speed.
import { defineConfig } from 'vitest/config';

export default defineConfig({
  test: {
    include: ['tests/browser/**/*.test.ts'],
    minWorkers: 1,
    maxWorkers: 2,
    testTimeout: 300_000,
    hookTimeout: 300_000,
  },
});
