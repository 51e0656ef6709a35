// Tests of dist/report.html in Chromium. One at a time and without haste: the
// machine may be busy, so that no limit here is a statement about speed.
import { defineConfig } from 'vitest/config';

export default defineConfig({
  test: {
    include: ['tests/browser/**/*.test.ts'],
    fileParallelism: false,
    testTimeout: 300_000,
    hookTimeout: 300_000,
  },
});
