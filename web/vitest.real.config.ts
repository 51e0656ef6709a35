// Tests with the polyattn command and real runs. As patient as those of the browser.
import { defineConfig } from 'vitest/config';

export default defineConfig({
  test: {
    include: ['tests/real/**/*.test.ts'],
    fileParallelism: false,
    testTimeout: 600_000,
    hookTimeout: 600_000,
  },
});
