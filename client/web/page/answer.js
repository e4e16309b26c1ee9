// Copyright the blindfuse authors. SPDX-License-Identifier: Apache-2.0

// A value as people read it. It comes from a server and may be any bytes: it is shown as text, never as markup.

import { count, counted, element, hex } from './format.js';

const TEXT_MAX = 20_000;  // characters; more would keep the browser busy laying them out
const HEX_MAX = 2_048;    // bytes
const CONTROL = /[\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f]/;

function textOf(bytes) {
  try {
    const text = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes);
    return CONTROL.test(text) ? null : text;
  } catch {
    return null;
  }
}

/** Indented, if it is an object or an array in JSON. */
function indented(text) {
  if (!/^\s*[[{]/.test(text)) return null;
  try {
    return JSON.stringify(JSON.parse(text), null, 2);
  } catch {
    return null;
  }
}

function hexDump(bytes) {
  const lines = [];
  const end = Math.min(bytes.length, HEX_MAX);
  for (let at = 0; at < end; at += 16) lines.push(hex(bytes.subarray(at, Math.min(at + 16, end))));
  return lines.join('\n');
}

const scrollable = (text, label) => element('pre', { tabindex: '0', role: 'region', 'aria-label': label }, text);

function cut(text) {
  if (text.length <= TEXT_MAX) return [text, null];
  return [text.slice(0, TEXT_MAX),
    element('p', { class: 'note' }, `The first ${count(TEXT_MAX)} characters of ${count(text.length)}.`)];
}

function valueParts(bytes) {
  if (bytes.length === 0) return [element('p', { class: 'note' }, 'It is there, and its value is empty.')];
  const text = textOf(bytes);
  if (text === null) {
    const shown = bytes.length > HEX_MAX ? `The first ${count(HEX_MAX)} of ${counted(bytes.length, 'byte')}` :
      counted(bytes.length, 'byte');
    return [scrollable(hexDump(bytes), 'The value in hexadecimal'),
      element('p', { class: 'note' }, `${shown} that are no text, in hexadecimal.`)];
  }
  const json = indented(text);
  const [shown, note] = cut(json ?? text);
  const value = json === null ? element('p', { class: 'value' }, shown) : scrollable(shown, 'The value, as JSON');
  return note === null ? [value] : [value, note];
}

/** What to show for the value of a key; null: it is not there. */
export function answerOf(key, value, isIndex) {
  const title = element('h2', {}, key);
  if (value !== null) return element('div', { class: 'entry' }, title, ...valueParts(value));
  return element('div', { class: 'entry absent' }, title, element('p', { class: 'value' }, 'Not there.'),
    element('p', { class: 'note' }, isIndex ? 'The database has no such number.' :
      'This database has no such key. The server cannot tell this from a look-up that finds something.'));
}
