// The dashboard: a document that is fetched again when the server says that it has
// changed, at most once a second, and a banner when the server is gone.
import type { Report } from './model/document';
import { DocumentError, parseReport } from './model/read';

export type Connection = 'connecting' | 'open' | 'lost';

export interface LiveOptions {
  onReport(report: Report): void;
  onConnection(state: Connection, detail: string): void;
}

const pause = 1000; // between two fetches, milliseconds
const longestPause = 15_000; // between two attempts to connect

export class LiveFeed {
  private source: EventSource | null = null;
  private failures = 0;
  private wanted = false; // a change has been announced
  private busy = false;
  private lastFetch = -Infinity;
  private retry: ReturnType<typeof setTimeout> | undefined;

  constructor(private readonly options: LiveOptions) {}

  start(): void {
    this.options.onConnection('connecting', '');
    this.connect();
  }

  private connect(): void {
    this.source?.close();
    const source = new EventSource('/api/events');
    this.source = source;
    source.addEventListener('open', () => {
      this.failures = 0;
      this.options.onConnection('open', '');
      this.want();
    });
    source.addEventListener('changed', () => this.want());
    // Some browsers try again by themselves and some errors end it: one way for
    // both, with growing pauses.
    source.addEventListener('error', () => this.lost('The connection to the dashboard is lost.'));
  }

  private lost(reason: string): void {
    this.source?.close();
    this.source = null;
    const wait = Math.min(pause * 2 ** this.failures++, longestPause);
    this.options.onConnection(
      'lost',
      `${reason} What is shown may be old. Next attempt in ${Math.round(wait / 1000)} s.`,
    );
    clearTimeout(this.retry);
    this.retry = setTimeout(() => this.connect(), wait);
  }

  private want(): void {
    this.wanted = true;
    if (this.busy) return;
    this.busy = true;
    const wait = Math.max(0, this.lastFetch + pause - performance.now());
    setTimeout(() => void this.load(), wait);
  }

  private async load(): Promise<void> {
    this.wanted = false;
    this.lastFetch = performance.now();
    try {
      const response = await fetch('/api/report', { cache: 'no-store' });
      if (!response.ok) throw new Error(`/api/report answered ${response.status}`);
      this.options.onReport(parseReport(await response.text()));
    } catch (error) {
      const reason =
        error instanceof DocumentError
          ? `${error.message} ${error.advice}`
          : `The report could not be fetched (${error instanceof Error ? error.message : String(error)}).`;
      this.lost(reason);
    }
    this.busy = false;
    if (this.wanted) this.want();
  }
}
