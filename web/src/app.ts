// The page: sections over one document and one set of choices.
import { fill, h } from './dom';
import { showAll } from './lazy';
import type { Report } from './model/document';
import { navBar } from './nav';
import { runGroup } from './sections/axis';
import { benchSection } from './sections/bench';
import { curvesSection } from './sections/curves';
import { lengthsSection } from './sections/lengths';
import { MapsSection } from './sections/maps';
import { normsSection } from './sections/norms';
import { resultSection } from './sections/result';
import { runsSection } from './sections/runs';
import { searchSection } from './sections/search';
import { setupSection } from './sections/setup';
import { SolutionsSection } from './sections/solutions';
import { theorySection } from './sections/theory';
import { moment } from './text/format';
import { Theme } from './theme';
import { tasksOf, type Context, type Section } from './view/context';
import { legendBar } from './view/legend';
import { Styles } from './view/palette';
import { Store } from './view/store';

// Baselines get ink; the others colours in the order of the tables.
function registerStyles(styles: Styles, report: Report): void {
  for (const { baseline } of report.comparisons) if (baseline !== '') styles.add(baseline, true);
  if (report.comparisons.length === 0 && report.runs.some((run) => run.activation === 'softmax'))
    styles.add('softmax', true);
  for (const { rows } of report.comparisons)
    for (const row of rows) styles.add(row.activation, false);
  for (const run of report.runs) styles.add(run.activation, false);
}

export class App {
  private readonly context: Context;
  private readonly sections: Section[];
  private readonly charts: Section[];
  private readonly legend;
  private readonly nav;
  private readonly chartArea: HTMLElement;
  private readonly footer = h('footer', { class: 'footer' });
  private pending = false;

  constructor(root: HTMLElement, report: Report, banner: HTMLElement | null) {
    const store = new Store({
      task: tasksOf(report)[0] ?? '',
      hidden: new Set(),
      seeds: 'bands',
      axis: 'step',
      layer: 'all',
      head: 'all',
      combine: 'max',
      relative: false,
    });
    this.context = { report, store, styles: new Styles(), theme: new Theme() };
    const group = runGroup(this.context);
    this.legend = legendBar(this.context);
    this.nav = navBar(this.context.theme);
    this.charts = [
      curvesSection(this.context, group),
      new SolutionsSection(this.context),
      normsSection(this.context, group),
      lengthsSection(this.context),
      new MapsSection(this.context),
    ];
    this.chartArea = h(
      'div',
      { class: 'chart-area' },
      this.legend.element,
      this.charts.map((section) => section.element),
    );
    const runs = runsSection(this.context);
    const before = [
      resultSection(this.context),
      searchSection(this.context),
      ...(report.live ? [runs] : []),
      setupSection(this.context),
    ];
    const after = [
      theorySection(this.context),
      benchSection(this.context),
      ...(report.live ? [] : [runs]),
    ];
    this.sections = [...before, ...this.charts, ...after];
    const main = h(
      'main',
      { id: 'main' },
      banner,
      before.map((section) => section.element),
      this.chartArea,
      after.map((section) => section.element),
    );
    fill(
      root,
      h('a', { class: 'skip', href: '#main' }, 'Skip to the report'),
      this.nav.element,
      main,
      this.footer,
    );
    store.subscribe((changed) => {
      if (changed.has('axis') || changed.has('task')) group.reset();
      this.schedule();
    });
    this.preparePrinting();
    this.show(report);
  }

  // Another document, in live mode. What the reader has chosen stays.
  show(report: Report): void {
    this.context.report = report;
    registerStyles(this.context.styles, report);
    const tasks = tasksOf(report);
    const { store } = this.context;
    if (tasks.length > 0 && !tasks.includes(store.get().task)) store.set({ task: tasks[0] });
    document.title = report.title || 'polyattn report';
    const present = this.sections.filter((section) => {
      section.element.hidden = !section.present();
      return !section.element.hidden;
    });
    this.chartArea.hidden = this.charts.every((section) => section.element.hidden);
    this.legend.update();
    for (const section of present) section.update();
    this.nav.update(present);
    fill(
      this.footer,
      `Written by polyattn ${report.version || '(unknown version)'}${report.generated ? `, ${moment(report.generated)}` : ''}. This file needs no network.`,
    );
  }

  // Several choices in a row are one redrawing.
  private schedule(): void {
    if (this.pending) return;
    this.pending = true;
    requestAnimationFrame(() => {
      this.pending = false;
      this.legend.update();
      for (const section of this.charts) if (!section.element.hidden) section.update();
    });
  }

  private preparePrinting(): void {
    addEventListener('beforeprint', () => {
      this.context.theme.print(true);
      showAll();
    });
    addEventListener('afterprint', () => this.context.theme.print(false));
  }
}
