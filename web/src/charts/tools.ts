// The buttons of a chart.
import { h } from '../dom';
import { csvButton } from '../download';
import type { Table } from '../text/csv';
import type { ChartGroup } from './group';

export interface ToolActions {
  what: string;
  compact: boolean;
  group: ChartGroup;
  isLog(): boolean;
  setLog(log: boolean): void;
  table(): Table;
}

export interface Tools {
  element: HTMLElement;
  refresh(): void;
}

function tool(text: string, label: string, click: () => void): HTMLButtonElement {
  return h(
    'button',
    { type: 'button', class: 'tool', 'aria-label': label, title: label, on: { click } },
    text,
  );
}

export function chartTools(actions: ToolActions): Tools {
  const { group, what } = actions;
  const log = h(
    'button',
    {
      type: 'button',
      class: 'tool toggle',
      title: 'Logarithmic or linear y axis',
      on: { click: () => actions.setLog(!actions.isLog()) },
    },
    'log',
  );
  const closer = tool('+', `Zoom in: ${what}`, () => group.zoomBy(0.5));
  const farther = tool('−', `Zoom out: ${what}`, () => group.zoomBy(2));
  const reset = tool('reset', `Reset zoom: ${what}`, () => group.reset());
  const csv = csvButton(what, actions.table);
  const refresh = () => {
    log.setAttribute('aria-pressed', String(actions.isLog()));
    log.setAttribute('aria-label', `log y axis: ${what}`);
    for (const button of [farther, reset]) button.disabled = !group.isZoomed();
  };
  refresh();
  const zoom = actions.compact ? [] : [closer, farther, reset];
  return {
    element: h(
      'div',
      { class: 'tools', role: 'group', 'aria-label': `Controls of ${what}` },
      log,
      zoom,
      csv,
    ),
    refresh,
  };
}
