// Debian's Chromium and pages of fixtures in it, opened from a file as from a mail.
// CHROMIUM names another executable.
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import {
  type Browser,
  type BrowserContextOptions,
  chromium,
  type Download,
  type Page,
} from 'playwright-core';
import { fixtures } from '../fixtures';
import { embed, embedText } from '../fixtures/embed';

const executablePath = process.env.CHROMIUM ?? '/usr/bin/chromium';
const args = [
  '--no-sandbox',
  '--disable-gpu',
  '--disable-quic',
  '--no-first-run',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
];

// The page as npm run build makes it.
export function template(): string {
  return readFileSync(new URL('../../dist/report.html', import.meta.url), 'utf8');
}

export interface Opened {
  page: Page;
  document: Record<string, any>;
  // What the page complained about or asked the network for; to be empty.
  complaints: string[];
}

export class Chromium {
  private readonly documents: Record<string, Record<string, any>> = {};

  private constructor(
    readonly browser: Browser,
    private readonly folder: string,
  ) {}

  static async start(): Promise<Chromium> {
    const browser = await chromium.launch({ executablePath, args });
    return new Chromium(browser, mkdtempSync(join(tmpdir(), 'polyattn-report-')));
  }

  async stop(): Promise<void> {
    await this.browser.close();
    rmSync(this.folder, { recursive: true, force: true });
  }

  async newPage(
    options: BrowserContextOptions = {},
  ): Promise<{ page: Page; complaints: string[] }> {
    const context = await this.browser.newContext({
      viewport: { width: 1280, height: 900 },
      reducedMotion: 'reduce',
      ...options,
    });
    const page = await context.newPage();
    page.setDefaultTimeout(120_000);
    const complaints: string[] = [];
    page.on(
      'console',
      (message) => ['error', 'warning'].includes(message.type()) && complaints.push(message.text()),
    );
    page.on('pageerror', (error) => complaints.push(error.message));
    page.on(
      'request',
      (request) =>
        /^(file|data|blob):/.test(request.url()) || complaints.push(`asked for ${request.url()}`),
    );
    return { page, complaints };
  }

  async openHtml(
    html: string,
    options: BrowserContextOptions = {},
  ): Promise<{ page: Page; complaints: string[] }> {
    const opened = await this.newPage(options);
    const file = join(this.folder, 'report.html');
    writeFileSync(file, html);
    await opened.page.goto(pathToFileURL(file).href);
    return opened;
  }

  async open(name: string, options: BrowserContextOptions = {}): Promise<Opened> {
    const document = (this.documents[name] ??= fixtures[name]());
    const opened = await this.openHtml(embed(template(), document), options);
    await opened.page.waitForSelector('main');
    return { ...opened, document };
  }

  openText(json: string): Promise<{ page: Page; complaints: string[] }> {
    return this.openHtml(embedText(template(), json));
  }
}

// Scrolls to a chart and waits until it is drawn.
export async function chart(page: Page, id: string) {
  const card = page.locator(`#${id}`);
  await card.scrollIntoViewIfNeeded();
  await card.locator('.u-over').waitFor();
  return card;
}

// Draws everything, as for print, and not only what is in sight.
export async function drawAll(page: Page): Promise<void> {
  await page.evaluate(() => dispatchEvent(new Event('beforeprint')));
  await page.evaluate(() => dispatchEvent(new Event('afterprint')));
}

// And opens what is folded.
export async function showAll(page: Page): Promise<void> {
  await drawAll(page);
  await page.evaluate(() =>
    document.querySelectorAll('details').forEach((details) => (details.open = true)),
  );
}

// What axe thinks is in somebody's way.
export async function seriousViolations(page: Page): Promise<unknown[]> {
  const axe = createRequire(import.meta.url).resolve('axe-core/axe.min.js');
  // The policy of the page lets no script in; a debugger is not a script.
  await page.evaluate(`${readFileSync(axe, 'utf8')}; undefined`);
  const violations: any[] = await page.evaluate(async () => {
    const { violations } = await (globalThis as any).axe.run(document, {
      resultTypes: ['violations'],
    });
    return violations.map((violation: any) => ({
      id: violation.id,
      impact: violation.impact,
      where: violation.nodes.slice(0, 3).map((node: any) => node.html.slice(0, 120)),
    }));
  });
  return violations.filter(({ impact }) => ['serious', 'critical', 'moderate'].includes(impact));
}

// What the cursor of a chart says at the end that the key goes to.
export async function readAt(page: Page, id: string, key: 'Home' | 'End'): Promise<string> {
  const card = await chart(page, id);
  const frame = card.locator('.frame');
  await frame.focus();
  await frame.press(key);
  return (await card.locator('[aria-live]').textContent()) ?? '';
}

export async function downloadText(
  page: Page,
  click: () => Promise<void>,
): Promise<{ name: string; text: string }> {
  // Chromium refuses a second download of a page unless it knows of a click since, and on a
  // busy machine the download may get there first. People would click again.
  const once = async (timeout: number): Promise<Download> => {
    const [download] = await Promise.all([page.waitForEvent('download', { timeout }), click()]);
    return download;
  };
  const download = await once(15_000).catch(() => once(60_000));
  return { name: download.suggestedFilename(), text: readFileSync(await download.path(), 'utf8') };
}
