// Formulas on the page, set by KaTeX, or as plain text where it cannot.
import katex from 'katex';
import { h } from './dom';
import { formulaTex } from './text/formula';
import { splitVariant } from './text/variant';

const options = {
  throwOnError: true,
  trust: false,
  strict: 'error',
  maxExpand: 20,
  maxSize: 4,
} as const;

const cache = new Map<string, HTMLElement>();

// Our own LaTeX.
export function math(tex: string): HTMLElement {
  return cached(`math ${tex}`, () => rendered(tex, 'htmlAndMathml'));
}

function cached(key: string, make: () => HTMLElement): HTMLElement {
  let element = cache.get(key);
  if (element === undefined) cache.set(key, (element = make()));
  return element.cloneNode(true) as HTMLElement;
}

function rendered(tex: string, output: 'html' | 'htmlAndMathml'): HTMLElement {
  const element = h('span', { class: 'math' });
  katex.render(tex, element, { ...options, output });
  return element;
}

// An activation as someone typed it. That is also what a screen reader says: it is
// the name that the reader of a report knows.
export function formula(name: string): HTMLElement {
  const [activation, variant] = splitVariant(name);
  if (variant === '') return bareFormula(activation);
  return h('span', null, bareFormula(activation), ' ', h('code', null, `{${variant}}`));
}

function bareFormula(activation: string): HTMLElement {
  const tex = formulaTex(activation);
  if (tex !== null) {
    try {
      return cached(`formula ${activation}`, () =>
        h(
          'span',
          { class: 'formula' },
          h('span', { class: 'sr-only' }, activation),
          rendered(tex, 'html'),
        ),
      );
    } catch {
      // Not a formula after all: shown as text.
    }
  }
  return h('code', { class: 'formula-text' }, activation || '(no name)');
}

function escaped(text: string): string {
  return text.replace(/[.*+?^${}()|[\]\\]/g, '\\$&');
}

// A sentence of C++, in which the given activations are set as formulas.
export function prose(sentence: string, activations: readonly string[]): (string | HTMLElement)[] {
  // Words such as softmax read better as words.
  const known = activations
    .filter((name) => formulaTex(name) !== null && /[^A-Za-z\s]/.test(name))
    .sort((a, b) => b.length - a.length);
  if (known.length === 0) return [sentence];
  const pattern = new RegExp(`(?<![\\w^/*.)])(${known.map(escaped).join('|')})(?![\\w^/*(])`, 'g');
  return sentence.split(pattern).map((part, i) => (i % 2 === 1 ? formula(part) : part));
}
