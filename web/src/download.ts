// Files and the clipboard.
import { h } from './dom';
import { csvText, fileName, type Table } from './text/csv';

export function downloadCsv(table: Table): void {
  const url = URL.createObjectURL(new Blob([csvText(table)], { type: 'text/csv;charset=utf-8' }));
  const link = h('a', { href: url, download: fileName(table.name), hidden: true });
  document.body.append(link);
  link.click();
  link.remove();
  // The browser has taken hold of the blob by the time it starts to write.
  setTimeout(() => URL.revokeObjectURL(url), 60_000);
}

export function csvButton(what: string, table: () => Table): HTMLButtonElement {
  return h(
    'button',
    {
      type: 'button',
      class: 'tool',
      'aria-label': `Download CSV: ${what}`,
      title: 'Download the data of this as CSV',
      on: { click: () => downloadCsv(table()) },
    },
    'CSV',
  );
}

// Pages from a mail attachment may not write to the clipboard: then the text is
// selected, ready to be copied by hand.
async function copy(text: string, source: HTMLElement): Promise<string> {
  try {
    await navigator.clipboard.writeText(text);
    return 'Copied';
  } catch {
    getSelection()?.selectAllChildren(source);
    const done = document.execCommand('copy');
    return done ? 'Copied' : 'Selected: press Ctrl+C';
  }
}

export function copyButton(what: string, text: string, source: HTMLElement): HTMLButtonElement {
  const label = h('span', { role: 'status' }, 'Copy');
  const click = async () => {
    label.textContent = await copy(text, source);
    setTimeout(() => (label.textContent = 'Copy'), 2000);
  };
  return h(
    'button',
    {
      type: 'button',
      class: 'tool',
      'aria-label': `Copy ${what}`,
      on: { click: () => void click() },
    },
    label,
  );
}
