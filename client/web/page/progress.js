// Copyright the blindfuse authors. SPDX-License-Identifier: Apache-2.0

// The card that says what the page is busy with before it can answer, what is in its way, and what to do about it.

import { count, element, portion } from './format.js';

const STAGES = {
  'checking-hints': { name: 'Checking the hints that are here', amount: portion },
  'fetching-hints': { name: 'Downloading the hints', amount: portion },
  'preparing-queries': { name: 'Preparing a query', amount: (done, total) => `${count(done)} of ${count(total)} rows` },
  'waiting-for-lock': { name: 'Waiting for another tab, which is downloading' },
  'waiting-for-server': { name: 'The server is busy; asking again in a moment' },
};

export class Setup {
  #card = document.getElementById('setup');
  #title = document.getElementById('setup-title');
  #text = document.getElementById('setup-text');
  #bars = document.getElementById('bars');
  #button = document.getElementById('setup-button');
  #keyForm = document.getElementById('api-key-form');
  #keyInput = document.getElementById('api-key');
  #stages = new Map();
  #latest = new Map();
  #frame = 0;
  #act = () => {};

  constructor() {
    this.#button.addEventListener('click', () => {
      // The button goes; a person at the keyboard stays in the card.
      this.#title.focus();
      this.#act();
    });
    this.#keyForm.addEventListener('submit', (event) => {
      event.preventDefault();
      const key = this.#keyInput.value.trim();
      this.#keyInput.value = '';
      if (key === '') this.#keyInput.focus();
      else {
        this.#title.focus();
        this.#act(key);
      }
    });
  }

  #show(kind, title, text) {
    this.#card.hidden = false;
    this.#card.dataset.kind = kind;
    this.#title.textContent = title;
    this.#text.textContent = text;
    this.#button.hidden = true;
    this.#keyForm.hidden = true;
    this.#bars.replaceChildren();
    this.#stages.clear();
    this.#latest.clear();
  }

  get isVisible() {
    return !this.#card.hidden;
  }

  isAbout(title) {
    return this.isVisible && this.#title.textContent === title;
  }

  hide() {
    this.#card.hidden = true;
    this.#latest.clear();
  }

  /** Something goes on; bars appear as progress is reported. */
  busy(title, text = '') {
    this.#show('busy', title, text);
  }

  /** Waits for a click. */
  ask(title, text, button, act, kind = 'question') {
    this.#show(kind, title, text);
    this.#button.textContent = button;
    this.#button.hidden = false;
    this.#act = act;
  }

  /** Something is in the way, with or without something to do about it. */
  trouble(title, text, button = null, act = () => {}) {
    if (button !== null) this.ask(title, text, button, act, 'trouble');
    else this.#show('trouble', title, text);
  }

  /** Waits for an API key. */
  askForKey(title, text, act) {
    this.#show('question', title, text);
    this.#keyForm.hidden = false;
    this.#act = act;
    this.#keyInput.focus();
  }

  /** Progress of a stage, drawn at most once a frame however often it is reported. */
  progress({ stage, done, total }) {
    if (this.#card.hidden || this.#card.dataset.kind !== 'busy' || !(stage in STAGES)) return;
    this.#latest.set(stage, { done, total });
    this.#frame ||= requestAnimationFrame(() => {
      this.#frame = 0;
      for (const [name, amounts] of this.#latest) this.#draw(name, amounts);
    });
  }

  #draw(stage, { done, total }) {
    if (!this.#stages.has(stage)) this.#stages.set(stage, this.#addBar(stage));
    const { bar, amount } = this.#stages.get(stage);
    const say = STAGES[stage].amount;
    amount.textContent = say && total > 0 ? say(done, total) : '';
    if (!bar) return;
    if (!(total > 0)) return bar.removeAttribute('value');
    bar.max = total;
    bar.value = done;
  }

  #addBar(stage) {
    const { name, amount: hasAmount } = STAGES[stage];
    const id = `bar-${stage}`;
    const amount = element('span', { class: 'bar-amount' });
    const text = element('p', { class: 'bar-text' }, element('span', { id }, name), amount);
    const bar = hasAmount ? element('progress', { 'aria-labelledby': id }) : null;
    this.#bars.append(element('div', { class: 'bar' }, text, ...(bar ? [bar] : [])));
    return { bar, amount };
  }
}
