// Work that waits until someone can see its result.

const waiting = new Map<Element, (visible: boolean) => void>();

const observer = new IntersectionObserver(
  (entries) => {
    for (const entry of entries) waiting.get(entry.target)?.(entry.isIntersecting);
  },
  { rootMargin: '300px 0px' },
);

// Tells whenever the element comes near the screen or leaves it.
export function watchVisibility(element: Element, listener: (visible: boolean) => void): void {
  waiting.set(element, listener);
  observer.observe(element);
}

export function unwatchVisibility(element: Element): void {
  waiting.delete(element);
  observer.unobserve(element);
}

// Before printing everything counts as seen.
export function showAll(): void {
  for (const listener of waiting.values()) listener(true);
}
