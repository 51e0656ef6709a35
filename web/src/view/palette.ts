// Which colour and which dashes an activation has. Both, because colours alone
// are lost on paper and on many eyes. tests/unit/palette.test.ts holds the colours
// apart under the common kinds of colour blindness.

export type Shade = 'light' | 'dark';

export interface LineStyle {
  colour: number; // index into the colours of a shade
  dash: number[];
}

// The first is ink, for what the others are held against.
export const colours: Record<Shade, string[]> = {
  light: ['#202327', '#1b4bc0', '#a0350a', '#0a7a48', '#7d3c80', '#9a8f3c', '#029fcf', '#dd6f91'],
  dark: ['#f0eee8', '#9dbcfb', '#ee924f', '#4fe39a', '#b366d4', '#e6c833', '#3a919e', '#db4f5f'],
};

export const dashes: number[][] = [
  [],
  [9, 4],
  [3, 3],
  [14, 4, 3, 4],
  [6, 3, 2, 3, 2, 3],
  [18, 5],
  [1.5, 3.5],
  [10, 3, 3, 3, 3, 3],
];

const cycle = 7; // colours beside ink

export function lineStyle(index: number): LineStyle {
  if (index === 0) return { colour: 0, dash: [] };
  const turn = Math.floor((index - 1) / cycle);
  return { colour: 1 + ((index - 1) % cycle), dash: dashes[1 + ((index - 1 + turn) % cycle)] };
}

// Gives out styles in the order in which names come, and never another one for
// the same name: a report that grows while it is looked at keeps its colours.
export class Styles {
  private readonly indices = new Map<string, number>();
  private next = 1;

  add(activation: string, isBaseline: boolean): void {
    if (this.indices.has(activation)) return;
    const inkIsFree = ![...this.indices.values()].includes(0);
    this.indices.set(activation, isBaseline && inkIsFree ? 0 : this.next++);
  }

  of(activation: string): LineStyle {
    this.add(activation, false);
    return lineStyle(this.indices.get(activation) ?? 0);
  }
}
