// Writes pages of the fixtures to look at: npm run fixtures -- NAME...
// Without names: all of them. They go to build/.
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { fixtures } from './fixtures';
import { embed } from './fixtures/embed';

const folder = new URL('../build/', import.meta.url);
const page = readFileSync(new URL('../dist/report.html', import.meta.url), 'utf8');
const names = process.argv.slice(2).filter((word) => word !== '--');

mkdirSync(folder, { recursive: true });
for (const name of names.length > 0 ? names : Object.keys(fixtures)) {
  const html = embed(page, fixtures[name]());
  writeFileSync(new URL(`${name}.html`, folder), html);
  console.log(`build/${name}.html ${html.length} bytes`);
}
