// Learning curves.
import { ChartCard } from '../charts/card';
import type { ChartGroup } from '../charts/group';
import type { ChartSpec } from '../charts/spec';
import {
  evalFigure,
  evalLoss,
  gradientNorm,
  learningRate,
  lossTerm,
  relativeL1,
  throughput,
  trainLoss,
  type Pick,
} from '../curves/metrics';
import { fill, h } from '../dom';
import type { Figure, Split } from '../model/document';
import { comparisonOf, taskRuns, type Context, type Section } from '../view/context';
import { currentAxis } from './axis';

interface Curve {
  id: string;
  title: string;
  about: string;
  log: boolean;
  pick: Pick;
}

// Of equations. What is good is orders of magnitude below what is not.
function solutionCurves(terms: string[]): Curve[] {
  return [
    {
      id: 'relative-l2',
      title: 'Relative L2 error',
      about: 'Root of the squared errors of the solution over its squares. Lower is better.',
      log: true,
      pick: evalFigure('relative_l2'),
    },
    {
      id: 'relative-l1',
      title: 'Relative L1 error',
      about: 'Errors of the solution over its size. Lower is better.',
      log: true,
      pick: relativeL1,
    },
    {
      id: 'test-loss',
      title: 'Loss at evaluations',
      about: 'The sum of its terms.',
      log: true,
      pick: evalLoss,
    },
    ...terms.map((name, i) => ({
      id: `loss-term-${i + 1}`,
      title: `Loss term: ${name}`,
      about: 'A part of the loss at evaluations.',
      log: true,
      pick: lossTerm(name),
    })),
  ];
}

// Of evaluations: the figure that counts, and the loss.
function evaluationCurves(figure: Figure, split: Split, terms: string[]): Curve[] {
  if (figure === 'relative_l2') return solutionCurves(terms);
  const title = split === 'test' ? 'Test' : 'Validation';
  const loss: Curve = {
    id: 'test-loss',
    title: `${title} loss`,
    about: `Cross-entropy on the whole ${split} set.`,
    log: false,
    pick: evalLoss,
  };
  if (figure === 'loss') return [loss];
  const first = {
    accuracy: {
      id: 'accuracy',
      title: `${title} accuracy, %`,
      about: `Share of the ${split} set that is classified correctly.`,
    },
    bits_per_byte: {
      id: 'bits-per-byte',
      title: `${title} bits per byte`,
      about: `Mean cross-entropy of the next byte on the ${split} set, over ln 2. Lower is better.`,
    },
  }[figure];
  return [{ ...first, log: false, pick: evalFigure(figure) }, loss];
}

const curves: Curve[] = [
  {
    id: 'train-loss',
    title: 'Training loss',
    about: 'Mean since the record before.',
    log: true,
    pick: trainLoss,
  },
  {
    id: 'gradient-norm',
    title: 'Gradient norm',
    about: 'Of all parameters together, before clipping.',
    log: true,
    pick: gradientNorm,
  },
  {
    id: 'learning-rate',
    title: 'Learning rate',
    about: 'Of AdamW, the same for all runs of a comparison; of L-BFGS the length of a step.',
    log: false,
    pick: learningRate,
  },
  {
    id: 'throughput',
    title: 'Throughput',
    about: 'Examples per second of training. Other work on the machine shows here too.',
    log: false,
    pick: throughput,
  },
];

function specOf({ id, title, about, log, pick }: Curve): ChartSpec {
  return { id, title, about, log, compact: false, pick: () => pick, references: () => [] };
}

// The figure that the runs have: what the comparison says, else what is recorded.
function figureOf(context: Context): Figure {
  const comparison = comparisonOf(context.report, context.store.get().task);
  if (comparison !== undefined) return comparison.figure;
  const runs = taskRuns(context);
  if (runs.some((run) => run.evaluation.accuracy !== null)) return 'accuracy';
  if (runs.some((run) => run.evaluation.relativeL2 !== null)) return 'relative_l2';
  return runs.some((run) => run.evaluation.bitsPerByte !== null) ? 'bits_per_byte' : 'loss';
}

function termsOf(context: Context): string[] {
  const names = taskRuns(context).flatMap((run) => run.evaluation.terms.map(({ name }) => name));
  return [...new Set(names)];
}

export function curvesSection(context: Context, group: ChartGroup): Section {
  const grid = h('div', { class: 'cards' });
  const lead = h(
    'p',
    { class: 'lead screen-only' },
    'Drag across a chart to zoom, double-click to go back; all charts of this page that show steps or time follow. With the keyboard: arrows read values, + and − zoom, 0 resets.',
  );
  const element = h(
    'section',
    { id: 'curves', 'aria-labelledby': 'curves-title' },
    h('h2', { id: 'curves-title' }, 'Learning'),
    lead,
    grid,
  );
  let cards: ChartCard[] = [];
  let built = '';
  const build = (figure: Figure, split: Split, terms: string[]) => {
    for (const card of cards) card.remove();
    const chosen = [...evaluationCurves(figure, split, terms), ...curves];
    cards = chosen.map(
      (curve) => new ChartCard(context, group, () => currentAxis(context), specOf(curve)),
    );
    fill(
      grid,
      cards.map((card) => card.element),
    );
  };
  context.theme.subscribe(() => cards.forEach((card) => card.restyle()));
  const update = () => {
    const figure = figureOf(context);
    const split = comparisonOf(context.report, context.store.get().task)?.split ?? 'test';
    const terms = termsOf(context);
    const wanted = JSON.stringify([figure, split, terms]);
    if (wanted !== built) build(figure, split, terms);
    built = wanted;
    for (const card of cards) card.update();
  };
  const present = () =>
    context.report.runs.some((run) => run.train.step.length > 0 || run.evaluation.step.length > 0);
  return { id: 'curves', title: 'Learning', element, present, update };
}
