// What every section of the page works with.
import type { Comparison, Report, Run } from '../model/document';
import type { Theme } from '../theme';
import type { Styles } from './palette';
import type { Store } from './store';

export interface Context {
  report: Report; // replaced as a whole in live mode
  store: Store;
  styles: Styles;
  theme: Theme;
}

export interface Section {
  id: string;
  title: string; // in the navigation
  element: HTMLElement;
  // Whether there is anything to show.
  present(): boolean;
  // The document or the view has changed.
  update(): void;
}

export function tasksOf(report: Report): string[] {
  return [...new Set(report.runs.map((run) => run.task))];
}

// Runs of the task that the reader looks at.
export function taskRuns(context: Context): Run[] {
  const { task } = context.store.get();
  return context.report.runs.filter((run) => run.task === task);
}

export function visibleRuns(context: Context): Run[] {
  const { hidden } = context.store.get();
  return taskRuns(context).filter((run) => !hidden.has(run.activation));
}

export function activationsOf(runs: readonly Run[]): string[] {
  return [...new Set(runs.map((run) => run.activation))];
}

export function comparisonOf(report: Report, task: string): Comparison | undefined {
  return report.comparisons.find((comparison) => comparison.task === task);
}
