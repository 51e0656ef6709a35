// How good language models are at lengths other than that of their training.
import { fill, h, scrollable } from '../dom';
import { csvButton } from '../download';
import { figureText, integer } from '../text/format';
import { formula } from '../math';
import { activationsOf, taskRuns, visibleRuns, type Context, type Section } from '../view/context';
import { swatch } from '../view/swatch';
import { LengthChart } from './length-chart';
import {
  lengthPanels,
  lengthsOf,
  lengthsTable,
  runsWithLengths,
  type LengthRun,
} from './length-panels';

function lead(runs: LengthRun[]): string {
  const contexts = [...new Set(runs.map((run) => run.lengths.context))].sort((a, b) => a - b);
  return `Trained on examples of ${contexts.map(integer).join(' or ')} tokens. Beyond that a model must use what it learned at places where it never was; who is as good there as within it has learned something that does not depend on the length.`;
}

function cell(runs: LengthRun[], length: number): HTMLElement {
  const values = runs.flatMap((run) =>
    run.lengths.results.filter((result) => result.tokens === length).map(({ value }) => value),
  );
  const mean = values.reduce((sum, value) => sum + value, 0) / values.length;
  return h('td', { class: 'number' }, figureText(runs[0].lengths.figure, mean));
}

function table(context: Context, runs: LengthRun[]): HTMLElement {
  const lengths = lengthsOf(runs);
  const row = (activation: string) => {
    const own = runs.filter((run) => run.activation === activation);
    return h(
      'tr',
      null,
      h('th', { scope: 'row' }, swatch(context.styles.of(activation)), ' ', formula(activation)),
      lengths.map((length) => cell(own, length)),
    );
  };
  const heading = (text: string) => h('th', { scope: 'col' }, text);
  return scrollable(
    'Figures by length',
    h(
      'table',
      { class: 'data' },
      h('caption', null, 'Over whole examples of each length, the mean over seeds.'),
      h(
        'thead',
        null,
        h(
          'tr',
          null,
          heading(''),
          lengths.map((n) => heading(integer(n))),
        ),
      ),
      h('tbody', null, activationsOf(runs).map(row)),
    ),
  );
}

export function lengthsSection(context: Context): Section {
  const element = h('section', { id: 'lengths', 'aria-labelledby': 'lengths-title' });
  let drawn = '';
  const update = () => {
    const runs = runsWithLengths(visibleRuns(context));
    const signature = JSON.stringify(runs.map((run) => [run.name, run.lengths]));
    if (signature === drawn) return;
    drawn = signature;
    const panels = lengthPanels(runs);
    const chart =
      panels.length === 0
        ? h('p', { class: 'empty' }, 'No lengths for what is chosen.')
        : new LengthChart(context.theme, panels, 'Shown', context.styles).element;
    fill(
      element,
      h('h2', { id: 'lengths-title' }, 'Lengths'),
      runs.length === 0
        ? null
        : [h('p', { class: 'lead' }, lead(runs)), csvButton('lengths', () => lengthsTable(runs))],
      chart,
      runs.length === 0 ? null : table(context, runs),
    );
  };
  const present = () => taskRuns(context).some((run) => run.lengths !== null);
  return { id: 'lengths', title: 'Lengths', element, present, update };
}
