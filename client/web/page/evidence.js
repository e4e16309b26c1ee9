// Copyright the blindfuse authors. SPDX-License-Identifier: Apache-2.0

// Shows what the server saw of the last look-ups: the bytes of the queries as they went out, their sizes and times,
// side by side.

import { count, counted, duration, element, hex, size } from './format.js';

const PICTURE_WIDTH = 128;
const PICTURE_HEIGHT = 96;
const HEX_BYTES = 48;
const MEASURED_MAX = 1 << 18;  // bytes; more would say no more, and take longer

// Other tasks that are due get their turn in between.
const nextTask = () => new Promise((resolve) => setTimeout(resolve));

/** Bits of entropy a byte, counted byte by byte: 8 when every value is as frequent as any other. */
function entropy(bytes) {
  const counts = new Uint32Array(256);
  for (let at = 0; at < bytes.length; ++at) ++counts[bytes[at]];
  let bits = 0;
  for (const times of counts) {
    if (times > 0) bits -= times / bytes.length * Math.log2(times / bytes.length);
  }
  return bits;
}

/** Bytes from the browser's own source of randomness, to compare with. */
function randomBytes(length) {
  const bytes = new Uint8Array(length);
  for (let at = 0; at < length; at += 65_536) crypto.getRandomValues(bytes.subarray(at, at + 65_536));
  return bytes;
}

function equalBytes(a, b) {
  let equal = 0;
  for (let at = 0; at < Math.min(a.length, b.length); ++at) equal += a[at] === b[at] ? 1 : 0;
  return equal;
}

/** Draws each byte as one dot: the larger, the more ink. */
function draw(canvas, bytes) {
  const context = canvas.getContext('2d');
  const image = context.createImageData(canvas.width, canvas.height);
  const ink = getComputedStyle(canvas).color.match(/\d+/g).map(Number);
  for (let at = 0; at < Math.min(bytes.length, canvas.width * canvas.height); ++at) {
    image.data[4 * at] = ink[0];
    image.data[4 * at + 1] = ink[1];
    image.data[4 * at + 2] = ink[2];
    image.data[4 * at + 3] = bytes[at];
  }
  context.putImageData(image, 0, 0);
}

function picture(look) {
  const shown = Math.min(look.query.length, PICTURE_WIDTH * PICTURE_HEIGHT);
  const canvas = element('canvas', {
    class: 'picture', width: PICTURE_WIDTH, height: Math.max(1, Math.ceil(shown / PICTURE_WIDTH)), role: 'img',
    'aria-label': `Noise: the first ${counted(shown, 'byte')} of the query as dots, without any pattern`,
  });
  canvas.look = look;
  return canvas;
}

/** A time with a bar next to it, as long as it is to the longest. */
function time(seconds, longest) {
  const bar = element('span', { class: 'length', 'aria-hidden': 'true' });
  bar.style.inlineSize = `${100 * seconds / Math.max(longest, 1e-9)}%`;
  return [duration(seconds), bar];
}

/** A row of the table. Roles are spelt out, since on a phone rows are not table rows to the style sheet. */
function row(name, looks, cells, attributes = {}) {
  const made = element('tr', { role: 'row', ...attributes }, element('th', { scope: 'row', role: 'rowheader' }, name));
  for (let i = 0; i < 2; ++i) {
    const content = i < looks.length ? [cells(looks[i])].flat() : [];
    made.append(element('td', { role: 'cell' }, ...content));
  }
  return made;
}

function head(looks) {
  const made = element('tr', { role: 'row' }, element('td', { role: 'cell' }, 'Known to this browser alone'));
  for (const look of looks) {
    const found = look.found ? 'there' : 'not there';
    made.append(element('th', { scope: 'col', role: 'columnheader' }, element('span', { class: 'word' }, look.key),
      element('span', { class: 'found' }, found)));
  }
  if (looks.length === 1) {
    made.append(element('td', { role: 'cell', class: 'quiet' }, 'Look up something else, to compare.'));
  }
  return element('thead', { role: 'rowgroup' }, made);
}

function queries(looks) {
  const shown = Math.min(looks[0].query.length, PICTURE_WIDTH * PICTURE_HEIGHT);
  const part = shown < looks[0].query.length ? `, the first ${count(shown)} bytes of it` : '';
  return element('tbody', { role: 'rowgroup' },
    row(`The query as it went out${part}: a dot for each byte`, looks, picture, { class: 'boundary' }),
    row('Its first bytes', looks, (look) => element('code', { class: 'hex' }, hex(look.query.subarray(0, HEX_BYTES)))),
    row('Sent', looks, (look) => size(look.query.length)),
    row('Sent back', looks, (look) => size(look.response.length)),
    row('Entropy of a byte', looks, (look) => [`${look.entropy.toFixed(4)} bits`,
      element('span', { class: 'found' }, `as many random bytes: ${look.randomEntropy.toFixed(4)}`)]));
}

function times(looks) {
  const longest = Math.max(...looks.flatMap((look) => [look.prepareSeconds, look.serverSeconds, look.decodeSeconds]));
  const title = element('th', { class: 'part', scope: 'rowgroup', role: 'rowheader', colspan: '3' }, 'How long it took');
  return element('tbody', { role: 'rowgroup' }, element('tr', { role: 'row' }, title),
    row('Making the query', looks, (look) => time(look.prepareSeconds, longest)),
    row('Waiting for the server', looks, (look) => time(look.serverSeconds, longest)),
    row('Reading the answer', looks, (look) => time(look.decodeSeconds, longest)));
}

function aboutTimes() {
  return element('p', { class: 'quiet' },
    'Times differ from one look-up to the next: the browser compiles its code at first, and other programs share the ' +
    'processor. The steps are the same for every key, whether it is there or not.');
}

function verdict(looks) {
  if (looks.length < 2) return [];
  const [first, second] = looks;
  if (first.query.length !== second.query.length) {
    return [element('p', { class: 'verdict' }, 'The database changed in between, and with it the size of every query.')];
  }
  const length = first.query.length;
  const expected = length / 256;
  const equal = equalBytes(first.query, second.query);
  const same = first.key === second.key ?
    'You asked for the same twice, and even that the server cannot tell: every query is encrypted anew. ' : '';
  return [element('p', { class: 'verdict' },
    `${same}Both queries have ${counted(length, 'byte')}, and ${count(equal)} of these are the same in both. Of two ` +
    `strings of random bytes one would expect ${count(Math.round(expected))}, give or take ` +
    `${count(Math.round(2 * Math.sqrt(expected)))}.`)];
}

/** The panel for up to two look-ups, the older one first. */
export class Evidence {
  #container;
  #looks = [];

  constructor(container) {
    this.#container = container;
    matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => this.#paint());
  }

  /** Adds a look-up: what was asked for, and the client's answer. */
  async add(key, answer) {
    await nextTask();
    const measured = answer.query.subarray(0, MEASURED_MAX);
    const measuredEntropy = entropy(measured);
    await nextTask();
    const randomEntropy = entropy(randomBytes(measured.length));
    await nextTask();
    const look = {
      key, found: answer.value !== null, query: answer.query, response: answer.response, prepareSeconds: answer.prepareSeconds,
      serverSeconds: answer.serverSeconds, decodeSeconds: answer.decodeSeconds,
      entropy: measuredEntropy, randomEntropy,
    };
    this.#looks = [...this.#looks.slice(-1), look];
    const table = element('table', { class: 'looks', role: 'table' },
      element('caption', {}, 'Above the dashed line is what you asked; below it, all that the server got of your question.'),
      head(this.#looks), queries(this.#looks), times(this.#looks));
    this.#container.replaceChildren(table, aboutTimes(), ...verdict(this.#looks));
    await nextTask();
    this.#paint();
  }

  #paint() {
    for (const canvas of this.#container.querySelectorAll('canvas')) draw(canvas, canvas.look.query);
  }
}
