// Copyright the blindfuse authors. SPDX-License-Identifier: Apache-2.0

// Numbers as people read them, and elements as programs write them.

const counts = new Intl.NumberFormat('en');

export const count = (number) => counts.format(number);

export const counted = (number, noun) => `${count(number)} ${noun}${number === 1 ? '' : 's'}`;

/** Bytes in powers of 1000, three digits. */
export function size(bytes) {
  let amount = bytes;
  let unit = 'bytes';
  for (const larger of ['kB', 'MB', 'GB']) {
    if (amount < 999.5) break;
    amount /= 1000;
    unit = larger;
  }
  return unit === 'bytes' ? counted(bytes, 'byte') : `${fixed(amount)} ${unit}`;
}

/** "7.2 of 45.1 MB": both in the unit of the second. */
export function portion(done, total) {
  const [unit, scale] = total >= 1e9 ? ['GB', 1e9] : total >= 1e6 ? ['MB', 1e6] : ['kB', 1e3];
  return `${(done / scale).toFixed(1)} of ${(total / scale).toFixed(1)} ${unit}`;
}

export function duration(seconds) {
  if (seconds >= 1) return `${seconds.toFixed(seconds < 10 ? 2 : 1)} s`;
  const milliseconds = seconds * 1000;
  return `${milliseconds.toFixed(milliseconds < 10 ? 1 : 0)} ms`;
}

function fixed(number) {
  return number.toFixed(number < 10 ? 2 : number < 100 ? 1 : 0);
}

/** Hexadecimal, two digits a byte, a space between. */
export function hex(bytes) {
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join(' ');
}

/** An element with attributes and children; strings become text, never markup. */
export function element(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  made.append(...children);
  return made;
}
