// Elements of the page. Text from outside only ever becomes a text node or the
// value of an attribute that runs nothing: there is no innerHTML in this project.

export type Child = Node | string | number | null | undefined | false | readonly Child[];

export interface Props {
  class?: string;
  on?: Partial<{ [E in keyof HTMLElementEventMap]: (event: HTMLElementEventMap[E]) => void }>;
  [attribute: string]: unknown;
}

function append(parent: Element, children: readonly Child[]): void {
  for (const child of children) {
    if (child === null || child === undefined || child === false) continue;
    if (Array.isArray(child)) append(parent, child);
    else parent.append(child instanceof Node ? child : String(child));
  }
}

function setProps(element: Element, props: Props): void {
  for (const [name, value] of Object.entries(props)) {
    if (value === undefined || value === null || value === false) continue;
    if (name === 'on') {
      for (const [event, listener] of Object.entries(value as object))
        element.addEventListener(event, listener as EventListener);
    } else {
      element.setAttribute(name, value === true ? '' : String(value));
    }
  }
}

export function h<K extends keyof HTMLElementTagNameMap>(
  tag: K,
  props: Props | null = null,
  ...children: Child[]
): HTMLElementTagNameMap[K] {
  const element = document.createElement(tag);
  if (props !== null) setProps(element, props);
  append(element, children);
  return element;
}

export function svg<K extends keyof SVGElementTagNameMap>(
  tag: K,
  props: Props = {},
  ...children: Child[]
): SVGElementTagNameMap[K] {
  const element = document.createElementNS('http://www.w3.org/2000/svg', tag);
  setProps(element, props);
  append(element, children);
  return element;
}

// A picture whose words a screen reader says.
export function picture(
  kind: string,
  width: number,
  height: number,
  words: string,
  ...children: Child[]
): SVGSVGElement {
  return svg(
    'svg',
    {
      class: kind,
      viewBox: `0 0 ${width} ${height}`,
      width,
      height,
      role: 'img',
      'aria-label': words,
    },
    ...children,
  );
}

export function fill(parent: Element, ...children: Child[]): void {
  parent.replaceChildren();
  append(parent, children);
}

interface Kept {
  open: boolean;
  focused: boolean;
  left: number;
  top: number;
}

// Replaces what is inside, but leaves open what was open, scrolled what was
// scrolled, and the focus where it was: by data-keep, which names such elements
// within the parent.
export function refill(parent: HTMLElement, ...children: Child[]): void {
  const kept = new Map<string, Kept>();
  const holder = document.activeElement?.closest('[data-keep]');
  for (const element of parent.querySelectorAll<HTMLElement>('[data-keep]')) {
    const open = element instanceof HTMLDetailsElement && element.open;
    kept.set(element.dataset.keep ?? '', {
      open,
      focused: element === holder,
      left: element.scrollLeft,
      top: element.scrollTop,
    });
  }
  fill(parent, ...children);
  for (const element of parent.querySelectorAll<HTMLElement>('[data-keep]')) {
    const state = kept.get(element.dataset.keep ?? '');
    if (state === undefined) continue;
    if (element instanceof HTMLDetailsElement) element.open = state.open;
    if (state.focused) (element.querySelector('summary') ?? element).focus({ preventScroll: true });
    if (state.left > 0 || state.top > 0)
      element.scrollTo({ left: state.left, top: state.top, behavior: 'instant' });
  }
}

// A table that is wider than the screen scrolls by itself, by keyboard too.
export function scrollable(label: string, ...children: Child[]): HTMLElement {
  return h(
    'div',
    {
      class: 'scroll',
      role: 'region',
      'aria-label': label,
      tabindex: 0,
      'data-keep': `scroll ${label}`,
    },
    ...children,
  );
}
