// Equations: what is exact, what each activation says, and how far that is off.
import { fill, h, refill } from '../dom';
import { watchVisibility } from '../lazy';
import type { Run } from '../model/document';
import { fieldsOf } from '../solutions/fields';
import { SolutionPanel } from '../solutions/panel';
import { taskRuns, visibleRuns, type Context, type Section } from '../view/context';
import { segmented } from '../view/controls';

const introduction =
  'The model at the end of training, beside the exact solution in the same colours; a prediction ' +
  'beyond the ends has the colour of the end. The error is the prediction less the solution. ' +
  'Point at a map to read its numbers.';

export class SolutionsSection implements Section {
  readonly id = 'solutions';
  readonly title = 'Solution';
  readonly element: HTMLElement;
  private readonly bar = h('div', { class: 'controls' });
  private readonly grid = h('div', { class: 'solutions' });
  private shared = false; // one scale of errors for all
  private drawn = '';
  private visible = false;

  constructor(private readonly context: Context) {
    this.element = h(
      'section',
      { id: 'solutions', 'aria-labelledby': 'solutions-title' },
      h('h2', { id: 'solutions-title' }, 'Solution'),
      h('p', { class: 'lead' }, introduction),
      this.bar,
      this.grid,
    );
    const scales = [
      { value: false, text: 'of each' },
      { value: true, text: 'the same' },
    ];
    refill(this.bar, [
      segmented('Scale of errors', scales, this.shared, (shared) => {
        this.shared = shared;
        this.update();
      }),
    ]);
    watchVisibility(this.grid, (visible) => {
      this.visible = visible;
      if (visible) this.update();
    });
    context.theme.subscribe(() => {
      this.drawn = '';
      this.update();
    });
  }

  present(): boolean {
    return taskRuns(this.context).some((run) => run.solution !== null);
  }

  update(): void {
    const runs = visibleRuns(this.context).filter((run) => run.solution !== null);
    const signature = JSON.stringify([
      this.shared,
      runs.map((run) => [run.name, run.step, run.updated]),
    ]);
    if (!this.visible || signature === this.drawn) return;
    this.drawn = signature;
    const nothing = h('p', { class: 'empty' }, 'No solution for what is chosen.');
    const panels = this.panels(runs);
    fill(this.grid, panels.length > 0 ? panels : nothing);
  }

  private panels(runs: Run[]): HTMLElement[] {
    const { theme, styles } = this.context;
    const found = runs.flatMap((run) => {
      const { solution } = run;
      return solution === null ? [] : [{ run, solution, fields: fieldsOf(solution) }];
    });
    const overall = Math.max(0, ...found.map(({ fields }) => fields?.largest ?? 0));
    return found.map(({ run, solution, fields }) => {
      if (fields === null) {
        return h('p', { class: 'empty' }, `The solution of ${run.name} is damaged.`);
      }
      const largest = this.shared ? overall : fields.largest;
      const options = { run, solution, fields, largest, shade: theme.shade(), styles };
      return new SolutionPanel(options).element;
    });
  }
}
