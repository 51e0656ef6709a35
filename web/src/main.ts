// Begins with what stands in the page: a document, or a reason why there is none.
import 'uplot/dist/uPlot.min.css';
import 'katex/dist/katex.min.css';
import './styles/base.css';
import './styles/layout.css';
import './styles/tables.css';
import './styles/charts.css';
import './styles/maps.css';
import './styles/solutions.css';
import './styles/print.css';
import { App } from './app';
import { fill, h } from './dom';
import { LiveFeed, type Connection } from './live';
import { DocumentError, parseReport } from './model/read';
import { Theme } from './theme';

function showProblem(root: HTMLElement, problem: DocumentError): void {
  new Theme();
  fill(
    root,
    h(
      'main',
      { class: 'problem', role: 'alert' },
      h('h1', null, 'Nothing to show'),
      h('p', null, problem.message),
      h('p', null, problem.advice),
    ),
  );
}

function startLive(app: App, banner: HTMLElement): void {
  const onConnection = (state: Connection, detail: string) => {
    banner.dataset.state = state;
    banner.textContent =
      state === 'lost' ? `⚠ ${detail}` : state === 'open' ? '● Live' : 'Connecting …';
  };
  new LiveFeed({ onReport: (report) => app.show(report), onConnection }).start();
}

function start(root: HTMLElement): void {
  const json = document.getElementById('polyattn-report')?.textContent ?? 'null';
  const report = parseReport(json);
  const banner = report.live
    ? h('div', { class: 'banner', role: 'status', 'data-state': 'connecting' })
    : null;
  const app = new App(root, report, banner);
  if (banner !== null) startLive(app, banner);
}

function asProblem(error: unknown): DocumentError {
  if (error instanceof DocumentError) return error;
  return new DocumentError(
    `This report cannot be shown: ${error instanceof Error ? error.message : String(error)}.`,
    'This is an error of the page. A browser that is up to date may help; the data is in the records of the runs.',
  );
}

const root = document.getElementById('app');
if (root !== null) {
  try {
    start(root);
  } catch (error) {
    showProblem(root, asProblem(error));
  }
}
