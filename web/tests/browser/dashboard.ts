// A dashboard that grows, drops its connections and comes back when it is told to.
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { embed } from '../fixtures/embed';

export class Dashboard {
  fetched = 0;
  report: Record<string, any>;
  private server: Server | null = null;
  private port = 0;
  private readonly listeners = new Set<ServerResponse>();

  constructor(
    private readonly template: string,
    report: Record<string, any>,
  ) {
    this.report = report;
  }

  get url(): string {
    return `http://127.0.0.1:${this.port}/`;
  }

  async start(): Promise<void> {
    const server = createServer((request, response) => this.answer(request, response));
    this.server = server;
    await new Promise<void>((done) => server.listen(this.port, '127.0.0.1', done));
    this.port = (server.address() as AddressInfo).port;
  }

  async stop(): Promise<void> {
    const { server } = this;
    this.server = null;
    this.listeners.clear();
    server?.closeAllConnections();
    await new Promise((done) => server?.close(done));
  }

  announce(): void {
    for (const listener of this.listeners)
      listener.write('event: changed\ndata: {"runs":["softmax-seed1"]}\n\n');
  }

  private answer(request: IncomingMessage, response: ServerResponse): void {
    if (request.url === '/')
      this.send(
        response,
        'text/html',
        embed(this.template, {
          ...this.report,
          runs: [],
          comparisons: [],
          verdict: '',
          live: true,
        }),
      );
    else if (request.url?.startsWith('/api/report')) {
      ++this.fetched;
      this.send(response, 'application/json', JSON.stringify({ ...this.report, live: true }));
    } else if (request.url === '/api/events') {
      response.writeHead(200, { 'content-type': 'text/event-stream', 'cache-control': 'no-store' });
      response.write(': hello\n\n');
      this.listeners.add(response);
    } else response.writeHead(404).end();
  }

  private send(response: ServerResponse, type: string, body: string): void {
    response.writeHead(200, { 'content-type': type, 'cache-control': 'no-store' }).end(body);
  }
}
