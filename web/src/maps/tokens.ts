// A row of attention over the text it reads.
import { fill, h } from '../dom';
import type { Look } from './canvas';
import { contrasting, css, diverging, placed } from './colour';
import { visibleToken } from './text';

export interface TokenRow {
  row: number | null; // the query
  column: number | null;
  weight: (token: number) => number;
  look: Look;
}

export function fillTokens(
  parent: HTMLElement,
  tokens: string[],
  { row, column, weight, look }: TokenRow,
): void {
  const spans = tokens.map((token, i) => {
    const colour = diverging(placed(weight(i), look.largest, look.contrast), look.shade);
    const marks = [i === row ? 'query' : '', i === column ? 'key' : ''].join(' ').trim();
    return h(
      'span',
      {
        class: marks,
        'data-token': i,
        style: `background: ${css(colour)}; color: ${contrasting(colour)}`,
      },
      visibleToken(token),
    );
  });
  fill(parent, spans);
}
