// The bar on top: sections that exist, and light or dark.
import { fill, h } from './dom';
import type { Choice, Theme } from './theme';
import type { Section } from './view/context';

const order: Choice[] = ['auto', 'light', 'dark'];
const words: Record<Choice, string> = { auto: '◐ auto', light: '○ light', dark: '● dark' };

function themeButton(theme: Theme): HTMLElement {
  const button = h('button', { type: 'button', class: 'tool', id: 'theme' });
  const label = () => {
    button.textContent = words[theme.chosen()];
    button.setAttribute('aria-label', `Colours: ${theme.chosen()}. Press to change.`);
  };
  button.addEventListener('click', () => {
    theme.choose(order[(order.indexOf(theme.chosen()) + 1) % order.length]);
    label();
  });
  label();
  return button;
}

export interface Nav {
  element: HTMLElement;
  update(sections: Section[]): void;
}

// The section that is read: the last whose beginning has passed the bar.
function currentSection(sections: Section[]): Section | undefined {
  const line = 140;
  return (
    [...sections].reverse().find(({ element }) => element.getBoundingClientRect().top < line) ??
    sections[0]
  );
}

export function navBar(theme: Theme): Nav {
  const links = h('div', { class: 'nav-links' });
  const element = h(
    'nav',
    { class: 'nav', 'aria-label': 'Sections' },
    h('div', { class: 'nav-inner' }, links, themeButton(theme)),
  );
  let shown: Section[] = [];
  const mark = () => {
    const current = currentSection(shown);
    for (const link of links.querySelectorAll('a')) {
      if (link.hash === `#${current?.id}`) link.setAttribute('aria-current', 'true');
      else link.removeAttribute('aria-current');
    }
  };
  let pending = false;
  addEventListener(
    'scroll',
    () => {
      if (pending) return;
      pending = true;
      requestAnimationFrame(() => {
        pending = false;
        mark();
      });
    },
    { passive: true },
  );
  const update = (sections: Section[]) => {
    if (sections.map(({ id }) => id).join() === shown.map(({ id }) => id).join()) return;
    shown = sections;
    fill(
      links,
      sections.map(({ id, title }) => h('a', { href: `#${id}` }, title)),
    );
    mark();
  };
  return { element, update };
}
