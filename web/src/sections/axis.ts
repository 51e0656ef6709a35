// The x axis that the charts of runs share.
import type { Range } from '../charts/group';
import { ChartGroup } from '../charts/group';
import type { Axis } from '../charts/spec';
import { secondsAt } from '../curves/metrics';
import type { Run } from '../model/document';
import { duration, integer, tick } from '../text/format';
import { taskRuns, type Context } from '../view/context';

const axes: Record<'step' | 'time', Axis> = {
  step: { name: 'steps', text: integer, title: (value) => `step ${integer(value)}` },
  time: {
    name: 'training time',
    text: (value) => clock(value),
    title: (value) => `after ${duration(value)}`,
  },
};

function clock(seconds: number): string {
  if (seconds < 60) return `${tick(seconds)} s`;
  const minutes = seconds / 60;
  return minutes < 180 ? `${tick(minutes)} min` : `${tick(minutes / 60)} h`;
}

function lastOf(values: Float64Array): number {
  return values.length > 0 ? values[values.length - 1] : 0;
}

function endOf(run: Run, axis: 'step' | 'time'): number {
  const step = Math.max(
    lastOf(run.train.step),
    lastOf(run.evaluation.step),
    lastOf(run.norms.step),
  );
  const end = axis === 'step' ? step : secondsAt(run, step);
  return Number.isFinite(end) ? end : 0;
}

export function currentAxis(context: Context): Axis {
  return axes[context.store.get().axis];
}

// All runs of the task count, shown or not, so that hiding one moves nothing.
export function runGroup(context: Context): ChartGroup {
  return new ChartGroup((): Range => {
    const { axis } = context.store.get();
    const end = Math.max(0, ...taskRuns(context).map((run) => endOf(run, axis)));
    return [0, end > 0 ? end : 1];
  });
}
