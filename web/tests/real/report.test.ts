// Reports that polyattn writes about runs that it has made: what the page shows is
// what the files of the runs say.
import { cpSync, mkdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import type { Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { duration, figureText, significant } from '../../src/text/format';
import {
  chart,
  Chromium,
  downloadText,
  readAt,
  seriousViolations,
  showAll,
} from '../browser/browser';
import { Folder, images, info, mean, polyattn, records, texts, type Json } from './polyattn';

const mostBytes = 2_000_000;
const folder = new Folder();
const activations = ['softmax', 'x^3/sqrt(N)'];
let chromium: Chromium;

function run(name: string): string {
  return folder.at('images', name);
}

const softmax = () => [run('softmax-seed1'), run('softmax-seed2')];

beforeAll(async () => {
  const words = ['--activations', activations.join(','), '--jobs', '2'];
  const out = ['--out', folder.at('images')];
  await polyattn('compare', ...images(60), ...words, '--seeds', '2', ...out);
  await polyattn('compare', ...texts(40), ...words, '--seeds', '1', '--out', folder.at('texts'));
  const wild = { 'model.activation': 'x^3', 'train.lr': 0.9, 'train.clip': 0, 'train.warmup': 0 };
  await polyattn('train', ...images(60, wild), '--out', folder.at('wild')).catch(() => {});
  chromium = await Chromium.start();
});
afterAll(async () => {
  await chromium?.stop();
  folder.remove();
});

async function open(path: string): Promise<{ page: Page; complaints: string[] }> {
  return chromium.openHtml(readFileSync(path, 'utf8'));
}

describe('a comparison', () => {
  it('ends with a report, which shows what run.json says', async () => {
    const path = folder.at('images', 'report.html');
    expect(statSync(path).size).toBeLessThan(mostBytes);
    const { page, complaints } = await open(path);
    const rows = await page.locator('table.result tbody tr').allTextContents();
    expect(rows).toHaveLength(2);
    for (const name of ['softmax', 'x3-over-sqrtN']) {
      const infos = [1, 2].map((seed) => info(run(`${name}-seed${seed}`)));
      const accuracy = figureText('accuracy', mean(infos.map((entry) => entry.accuracy)));
      const row = rows.find((text) => text.includes(`${accuracy} ±`));
      expect(row, `${name}: ${accuracy}`).toBeDefined();
      expect(row).toContain(mean(infos.map((entry) => entry.loss)).toFixed(3));
      expect(row).toContain(duration(mean(infos.map((entry) => entry.train_seconds))));
      const largest = Math.max(...infos.map((entry) => entry.max_weight_norm));
      expect(row).toContain(significant(largest));
    }
    const comparison = JSON.parse(readFileSync(folder.at('images', 'comparison.json'), 'utf8'));
    expect(await page.locator('#verdict').textContent()).toContain(comparison.verdict.slice(-30));
    const command = info(run('softmax-seed1')).command;
    expect(await page.locator('#setup').textContent()).toContain(command);
    await showAll(page);
    expect(complaints).toEqual([]);
    await page.context().close();
  });

  it('is drawn from metrics.jsonl', async () => {
    const { page } = await open(folder.at('images', 'report.html'));
    const lasts = (kind: string, pick: (record: Json) => number) =>
      softmax().map((path) => pick(records(path, kind).at(-1) as Json));
    const expected: [string, number[]][] = [
      ['train-loss', lasts('train', (record) => record.loss)],
      ['gradient-norm', lasts('train', (record) => record.grad_norm)],
      ['accuracy', lasts('eval', (record) => 100 * record.accuracy)],
      ['test-loss', lasts('eval', (record) => record.loss)],
      ['norm-weight', lasts('norms', (record) => Math.max(...record.weight_max.flat()))],
      ['norm-jacobian', lasts('norms', (record) => Math.max(...record.jacobian_max.flat()))],
      ['norm-score', lasts('norms', (record) => Math.max(...record.max_abs_score.flat()))],
    ];
    for (const [id, values] of expected) {
      const text = await readAt(page, id, 'End');
      const shown = Number(/softmax ([\d.]+)/.exec(text)?.[1]);
      // Four digits are shown, of records with five.
      expect(Math.abs(shown / mean(values) - 1), `${id}: ${text}`).toBeLessThan(1e-3);
    }
    await page.context().close();
  });

  it('gives its records as CSV', async () => {
    const { page } = await open(folder.at('images', 'report.html'));
    const card = await chart(page, 'train-loss');
    const { text } = await downloadText(page, () =>
      card.getByRole('button', { name: /Download CSV/ }).click(),
    );
    const lines = text.trimEnd().split('\r\n').slice(1);
    const own = lines.filter((line) => line.startsWith('softmax-seed1,'));
    const train = records(run('softmax-seed1'), 'train');
    expect(own).toHaveLength(train.length);
    own.forEach((line, i) => {
      const cells = line.split(',');
      expect(Number(cells[4])).toBe(train[i].step);
      expect(Number(cells[6])).toBe(Number(train[i].loss.toPrecision(5)));
    });
    await page.context().close();
  });

  it('shows the maps of maps.json', async () => {
    const { page } = await open(folder.at('images', 'report.html'));
    const maps = JSON.parse(readFileSync(`${run('softmax-seed1')}/maps.json`, 'utf8')) as Json;
    const [first] = maps.maps;
    const bytes = Buffer.from(first.values, 'base64');
    await page.locator('.maps').scrollIntoViewIfNeeded();
    await page.locator('.map').first().waitFor();
    const { text } = await downloadText(page, () =>
      page
        .locator('.map')
        .first()
        .getByRole('button', { name: /Download CSV/ })
        .click(),
    );
    const lines = text.trimEnd().split('\r\n');
    expect(lines).toHaveLength(1 + maps.rows);
    const weights = lines
      .slice(1)
      .flatMap((line) => line.split(',').slice(-maps.columns).map(Number));
    expect(weights).toHaveLength(maps.rows * maps.columns);
    weights.forEach((weight, i) =>
      expect(weight).toBeCloseTo((bytes.readInt8(i) * first.scale) / 127, 5),
    );
    expect(await page.locator('.picture').count()).toBeGreaterThan(0);
    await page.context().close();
  });
});

describe('everything at once', () => {
  it('with theory and speed, in one page below 2 MB that axe finds nothing serious in', async () => {
    const theory = await polyattn('theory', '--json', '--lengths', '16,32,64', '--samples', '40');
    writeFileSync(folder.at('theory.json'), theory.stdout);
    const lengths = ['--length', '16,64', '--op', 'forward', '--threads', '1'];
    const quick = ['--repeats', '1', '--min-time', '0.001'];
    await polyattn('bench', ...lengths, ...quick, '--json', folder.at('bench.json'));
    const path = folder.at('all.html');
    const extras = ['--theory', folder.at('theory.json'), '--bench', folder.at('bench.json')];
    const { stdout } = await polyattn('report', folder.path, ...extras, '-o', path);
    expect(stdout.trim()).toBe(path);
    expect(statSync(path).size).toBeLessThan(mostBytes);
    const { page, complaints } = await open(path);
    await showAll(page);
    expect(await page.locator('table.result').count()).toBe(2);
    expect(await page.locator('#runs').textContent()).toContain(
      info(folder.at('wild')).divergence.what,
    );
    const claims = (JSON.parse(theory.stdout) as Json).claims as Json[];
    expect(await page.locator('#theory .claim').count()).toBe(claims.length);
    const bench = JSON.parse(readFileSync(folder.at('bench.json'), 'utf8')) as { rows: Json[] };
    expect(await page.locator('#speed tbody tr').count()).toBe(bench.rows.length);
    expect(await page.locator('#speed .u-over').count()).toBe(1);
    expect(await seriousViolations(page)).toEqual([]);
    expect(complaints).toEqual([]);
    await page.context().close();
  });

  it('with hostile names', async () => {
    const evil = '<img src=x onerror="globalThis.hacked=1">';
    const names = [evil, "'; DROP TABLE runs; --", '=1+1', '<!--<script>', 'a\u2028b'];
    for (const name of names) {
      const path = folder.at('hostile', name);
      mkdirSync(path, { recursive: true });
      cpSync(run('softmax-seed1'), path, { recursive: true });
      const changed = { ...info(path), machine: evil, command: evil, task: evil };
      writeFileSync(`${path}/run.json`, JSON.stringify(changed));
      writeFileSync(`${path}/config.toml`, `# ${evil}\n</script><script>hacked=1</script>`);
    }
    const path = folder.at('hostile.html');
    await polyattn('report', folder.at('hostile'), '-o', path, '--title', evil);
    const { page, complaints } = await open(path);
    await showAll(page);
    const state = await page.evaluate(() => ({
      hacked: 'hacked' in globalThis,
      markup: document.querySelectorAll('img, iframe').length,
      scripts: document.querySelectorAll('script').length,
      title: document.querySelector('h1')?.textContent,
    }));
    expect(state).toEqual({ hacked: false, markup: 0, scripts: 2, title: evil });
    const shown = await page.locator('#runs').textContent();
    for (const name of names) expect(shown).toContain(name);
    expect(complaints).toEqual([]);
    await page.context().close();
  });
});

describe('a hundred runs of ten thousand records', () => {
  // Real records, one after the other and with later steps, and one spike in each.
  function lengthen(path: string, spike: number): void {
    const train = records(path, 'train');
    const lines: string[] = [];
    for (let i = 0; i < 10_000; ++i) {
      const loss = i === 4567 ? spike : train[i % train.length].loss;
      lines.push(JSON.stringify({ ...train[i % train.length], step: i + 1, loss }));
    }
    const others = [...records(path, 'eval'), ...records(path, 'norms')];
    lines.push(...others.map((record) => JSON.stringify(record)));
    writeFileSync(`${path}/metrics.jsonl`, `${lines.join('\n')}\n`);
  }

  it('are thinned honestly, and the page can be used', async () => {
    const origin = folder.at('many', 'run-0');
    for (let i = 0; i < 100; ++i) {
      const path = folder.at('many', `run-${i}`);
      cpSync(run(i % 2 === 0 ? 'softmax-seed1' : 'x3-over-sqrtN-seed1'), path, { recursive: true });
      writeFileSync(`${path}/run.json`, JSON.stringify({ ...info(path), seed: i }));
      lengthen(path, 900 + i);
    }
    const path = folder.at('many.html');
    await polyattn('report', folder.at('many'), '-o', path);
    expect(statSync(path).size).toBeLessThan(mostBytes);
    const { stdout } = await polyattn('report', folder.at('many'), '--json');
    const runs = (JSON.parse(stdout) as Json).runs as Json[];
    expect(runs).toHaveLength(100);
    const smallest = Math.min(...records(origin, 'train').map((record) => record.loss));
    for (const entry of runs) {
      expect(entry.points).toBe(10_000);
      expect(entry.shown).toBeLessThan(10_000);
      expect(Math.max(...entry.train.loss)).toBe(900 + entry.seed);
    }
    const first = runs.find((entry) => entry.seed === 0) as Json;
    expect(Math.min(...first.train.loss)).toBe(Number(smallest.toPrecision(5)));

    const { page, complaints } = await open(path);
    const card = await chart(page, 'train-loss');
    expect(await card.locator('.notes').textContent()).toMatch(/thinned/);
    await card.getByRole('button', { name: /Zoom in/ }).click();
    await page.getByRole('radio', { name: 'each' }).check();
    await page.getByRole('button', { name: 'Show softmax' }).click();
    expect(await readAt(page, 'train-loss', 'End')).toMatch(/step/);
    expect(await page.locator('#runs tbody tr').count()).toBeGreaterThan(0);
    expect(complaints).toEqual([]);
    await page.context().close();
  });
});
