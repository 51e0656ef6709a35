// The answer: verdict, cautions, and a table for each task.
import { h, refill, type Child } from '../dom';
import { prose } from '../math';
import type { Comparison, Report, Run } from '../model/document';
import { figureName, figureText, integer, moment, plural } from '../text/format';
import { activationsOf, type Context, type Section } from '../view/context';
import { resultTable } from './result-table';

function namesOf(report: Report): string[] {
  return [
    ...new Set([
      ...activationsOf(report.runs),
      ...report.comparisons.flatMap((comparison) => comparison.rows.map((row) => row.activation)),
    ]),
  ];
}

function runSentence(run: Run): string {
  const place = `${run.activation} on ${run.task}, seed ${integer(run.seed)}, after ${integer(run.step)} of ${integer(run.steps)} steps`;
  if (run.divergence !== null) return `${place}: diverged.`;
  if (run.accuracy !== null) return `${place}: accuracy ${figureText('accuracy', run.accuracy)} %.`;
  if (run.bitsPerByte !== null)
    return `${place}: ${figureText('bits_per_byte', run.bitsPerByte)} bits per byte.`;
  if (run.relativeL2 !== null)
    return `${place}: relative L2 error ${figureText('relative_l2', run.relativeL2)}.`;
  return run.loss === null
    ? `${place}: not evaluated yet.`
    : `${place}: loss ${figureText('loss', run.loss)}.`;
}

// What to say where C++ gave no verdict.
function plainVerdict(report: Report): string {
  const { runs, theory, bench } = report;
  if (runs.length === 1) return runSentence(runs[0]);
  if (runs.length > 1)
    return `${plural(runs.length, 'run')} on ${plural(new Set(runs.map((run) => run.task)).size, 'task')}; each task has its own answer below.`;
  if (theory !== null)
    return theory.holds
      ? 'Every theorem that was checked agrees with what was measured.'
      : 'A theorem that was checked does not agree with what was measured.';
  if (bench !== null) return `${plural(bench.rows.length, 'measurement')} of speed.`;
  return report.live
    ? 'No runs yet. This page fills up when they begin.'
    : 'This report holds no runs.';
}

function cautionList({ task, cautions }: Comparison, names: string[]): HTMLElement | null {
  if (cautions.length === 0) return null;
  const items = cautions.map((caution) => h('li', null, prose(caution, names)));
  return h(
    'aside',
    { class: 'cautions', 'aria-label': `Cautions, ${task}` },
    h('strong', null, cautions.length === 1 ? 'Caution' : 'Cautions'),
    h('ul', null, items),
  );
}

interface Block {
  comparison: Comparison;
  verdict: string; // '' if it stands on top already
  isLast: boolean;
}

function taskBlock(
  context: Context,
  { comparison, verdict, isLast }: Block,
  names: string[],
): HTMLElement {
  const single = context.report.comparisons.length === 1;
  const heading = single ? null : h('h2', null, comparison.task);
  const answer = verdict === '' ? null : h('p', { class: 'verdict small' }, prose(verdict, names));
  return h(
    'div',
    { class: 'task-block' },
    heading,
    answer,
    cautionList(comparison, names),
    resultTable(context, comparison, isLast),
  );
}

// The first sentence is the answer, the others what it rests on.
function answerText(verdict: string, names: string[]): Child[] {
  const end = verdict.indexOf('. ') + 1;
  if (end === 0) return [prose(verdict, names)];
  const rest = h('span', { class: 'rest' }, prose(verdict.slice(end), names));
  return [prose(verdict.slice(0, end), names), rest];
}

function kicker(report: Report): string {
  const tasks = report.comparisons.map(
    (comparison) => `${comparison.task}, by ${figureName[comparison.figure]}`,
  );
  const date = moment(report.generated);
  return ['polyattn', report.live ? 'live' : date, ...(tasks.length <= 3 ? tasks : [])]
    .filter((part) => part !== '')
    .join('  ·  ');
}

export function resultSection(context: Context): Section {
  const element = h('section', { id: 'result', class: 'hero', 'aria-labelledby': 'title' });
  const update = () => {
    const { report } = context;
    const names = namesOf(report);
    const { comparisons } = report;
    const verdict =
      report.verdict ||
      (comparisons.length === 1 ? comparisons[0].verdict : '') ||
      plainVerdict(report);
    const blocks = comparisons.map((comparison, i): Block => {
      const isSaid = comparisons.length === 1 || comparison.verdict === verdict;
      return {
        comparison,
        verdict: isSaid ? '' : comparison.verdict,
        isLast: i === comparisons.length - 1,
      };
    });
    refill(
      element,
      h('p', { class: 'kicker' }, kicker(report)),
      h('h1', { id: 'title' }, report.title || 'Report'),
      h('p', { class: 'verdict', id: 'verdict' }, answerText(verdict, names)),
      blocks.map((block) => taskBlock(context, block, names)),
    );
  };
  return { id: 'result', title: 'Result', element, present: () => true, update };
}
