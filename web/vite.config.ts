// Builds dist/report.html, the one file that polyattn embeds.
import { defineConfig } from 'vite';
import { fewFonts, singleFile } from './single-file';

export default defineConfig({
  plugins: [fewFonts(), singleFile('report.html')],
  build: {
    target: 'es2022',
    assetsInlineLimit: Number.MAX_SAFE_INTEGER,
    cssCodeSplit: false,
    modulePreload: false,
    reportCompressedSize: false,
    chunkSizeWarningLimit: 1000,
  },
});
