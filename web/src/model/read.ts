// Makes a Report of the JSON that C++ writes. Only what the page cannot do
// without is an error.
import { withVariant } from '../text/variant';
import type { Comparison, Report, Row, Run, RunState } from './document';
import { alignNames } from './names';
import { readBench, readTheory } from './read-extras';
import { readGrid } from './read-grids';
import { readLengths } from './read-lengths';
import { readMaps } from './read-maps';
import { readFigure, readSample } from './read-parts';
import { readEvalSeries, readNormSeries, readStart, readTrainSeries } from './read-series';
import { readSolution } from './read-solution';
import { fields, list, number, numberOrNull, text, texts } from './values';

export const schema = 1;

// The page has nothing to show. `advice` says what to do about it.
export class DocumentError extends Error {
  constructor(
    message: string,
    readonly advice: string,
  ) {
    super(message);
    this.name = 'DocumentError';
  }
}

const states: readonly string[] = ['running', 'finished', 'diverged', 'interrupted'];

function readRow(value: unknown): Row {
  const row = fields(value);
  return {
    activation: withVariant(text(row.activation), text(row.variant)),
    finished: number(row.finished) || 0,
    diverged: number(row.diverged) || 0,
    other: number(row.other) || 0,
    figure: readSample(row.figure),
    loss: readSample(row.loss),
    trainSeconds: number(row.train_seconds),
    peakMb: number(row.peak_mb),
    maxWeightNorm: number(row.max_weight_norm),
    maxJacobianNorm: number(row.max_jacobian_norm),
    pairs: number(row.pairs) || 0,
    difference: number(row.difference),
    halfWidth: number(row.half_width),
    best: row.best === true,
    likeBest: row.like_best === true,
  };
}

function readComparison(value: unknown): Comparison {
  const comparison = fields(value);
  return {
    task: text(comparison.task),
    figure: readFigure(comparison.figure),
    tokens: number(comparison.tokens),
    testCount: number(comparison.test_count),
    split: comparison.split === 'validation' ? 'validation' : 'test',
    baseline: text(comparison.baseline),
    intervals: text(fields(comparison.intervals).note),
    verdict: text(comparison.verdict),
    cautions: texts(comparison.cautions),
    rows: list(comparison.rows).map(readRow),
  };
}

function readDivergence(value: unknown): Run['divergence'] {
  if (value === null || value === undefined) return null;
  const divergence = fields(value);
  return { step: number(divergence.step), what: text(divergence.what) };
}

// 'runs/large (vit-small, softmax, 91.2 %)'; '' if it had none.
function readTeacher(value: unknown): string {
  if (value === null || value === undefined) return '';
  const teacher = fields(value);
  const accuracy = numberOrNull(teacher.accuracy);
  const what = [
    text(teacher.model),
    text(teacher.activation),
    accuracy === null ? '' : `${(100 * accuracy).toFixed(1)} %`,
  ];
  return `${text(teacher.run)} (${what.filter((part) => part !== '').join(', ')})`;
}

function readRun(value: unknown): Run {
  const run = fields(value);
  const state = text(run.state);
  return {
    name: text(run.name),
    task: text(run.task),
    activation: withVariant(text(run.activation), text(run.variant)),
    seed: number(run.seed),
    state: (states.includes(state) ? state : 'interrupted') as RunState,
    step: number(run.step),
    steps: number(run.steps),
    parameters: number(run.parameters),
    version: text(run.version),
    command: text(run.command),
    instructionSet: text(run.instruction_set),
    threads: number(run.threads),
    machine: text(run.machine),
    started: text(run.started),
    trainSeconds: number(run.train_seconds),
    evalSeconds: number(run.eval_seconds),
    peakMb: number(run.peak_mb),
    loss: numberOrNull(run.loss),
    accuracy: numberOrNull(run.accuracy),
    bitsPerByte: numberOrNull(run.bits_per_byte),
    relativeL1: numberOrNull(run.relative_l1),
    relativeL2: numberOrNull(run.relative_l2),
    tokens: number(run.tokens),
    teacher: readTeacher(run.teacher),
    maxWeightNorm: number(run.max_weight_norm),
    maxJacobianNorm: number(run.max_jacobian_norm),
    divergence: readDivergence(run.divergence),
    config: text(run.config),
    train: readTrainSeries(run.train, run.points),
    evaluation: readEvalSeries(run.eval),
    norms: readNormSeries(run.norms),
    start: readStart(run.start),
    updated: text(run.updated),
    maps: readMaps(run.maps),
    lengths: readLengths(run.lengths),
    solution: readSolution(run.solution),
  };
}

function checkSchema(document: Record<string, unknown>): void {
  if (document.schema === schema) return;
  if (document.schema === undefined) {
    throw new DocumentError(
      'The data of this page is no report document: it has no schema.',
      'Write the report again with polyattn report.',
    );
  }
  const writer = text(document.polyattn);
  throw new DocumentError(
    `This page reads documents of schema ${schema}; this one has schema ${JSON.stringify(document.schema)}.`,
    `Write the report again with ${writer ? `polyattn ${writer}, which wrote the document` : 'the polyattn that wrote the document'}.`,
  );
}

export function readReport(value: unknown): Report {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    throw new DocumentError(
      'There is no report in this page.',
      'polyattn report RUN... writes one with data.',
    );
  }
  const document = fields(value);
  checkSchema(document);
  const comparisons = list(document.comparisons).map(readComparison);
  const runs = list(document.runs).map(readRun);
  alignNames(comparisons, runs);
  return {
    version: text(document.polyattn),
    generated: text(document.generated),
    live: document.live === true,
    title: text(document.title),
    verdict: text(document.verdict),
    comparisons,
    grids: list(document.grids).map(readGrid),
    runs,
    theory: readTheory(document.theory),
    bench: readBench(document.bench),
  };
}

export function parseReport(json: string): Report {
  let value: unknown;
  try {
    value = JSON.parse(json);
  } catch (error) {
    throw new DocumentError(
      `The data of this page cannot be read: ${error instanceof Error ? error.message : String(error)}.`,
      'The file may be cut off. Copy it again, or write the report again with polyattn report.',
    );
  }
  return readReport(value);
}
