// Copyright the blindfuse authors. SPDX-License-Identifier: Apache-2.0

// The page: connects, downloads the hints, or masks, with the visitor's consent, looks keys up, and shows what the server saw of it.

import { answerOf } from './answer.js';
import { Evidence } from './evidence.js';
import { count, duration, size } from './format.js';
import { Setup } from './progress.js';

const ASK_ABOVE_BYTES = 50e6;  // of hints: large downloads need consent

const LONG_WAIT_MS = 300;
const NEW_VERSION = 'The database has a new version';

const byId = (id) => document.getElementById(id);
const form = byId('search');
const input = byId('key');
const button = byId('look-up');
const status = byId('status');
const answer = byId('answer');

// Secrecy rests on these assumptions, by the database's mode.
const assumptions = {
  hint: byId('assumption').textContent,
  packed: 'This rests on Learning With Errors over rings, a close relative of the problem that standard post-quantum ' +
    'encryption rests on, and on the circular security of the keys that come with each request, which most homomorphic ' +
    'encryption assumes.',
};

// The folder that this page lies in, wherever a proxy put it.
const serverUrl = new URL('.', document.baseURI).href;
const setup = new Setup();
const evidence = new Evidence(byId('evidence'));

// The fragment of the address has the settings, since browsers do not send it: /#server-key=HEX.
const settings = new URLSearchParams(location.hash.slice(1));
const serverKey = settings.get('server-key');

let client = null;
let apiKey;
let attempt = 0;     // counts connections: reports of an earlier one are ignored
let isReady = false;
let looking = false;
let lookingSince = 0;
let verify = false;  // the stored hints were damaged
let pending = null;  // the key that was entered before the page was ready

function say(text) {
  status.textContent = text;
}

function unsupported() {
  if (typeof WebAssembly !== 'object') return 'This browser has no WebAssembly, or it is switched off.';
  if (typeof Worker !== 'function') return 'This browser has no web workers.';
  return null;
}

function describe(info) {
  const isIndex = info.kind === 'index';
  const entries = `${count(info.keyCount)} ${info.keyCount === 1 ? 'entry' : 'entries'}`;
  byId('database').textContent = `${entries} · version ${info.epoch.slice(0, 8)}`;
  byId('database').title = `Epoch ${info.epoch}`;
  byId('assumption').textContent = assumptions[info.mode];
  describeSigner();
  if (!isIndex) return;
  byId('key-label').textContent = 'Number to look up';
  input.inputMode = 'numeric';
  byId('key-hint').textContent = `From 0 to ${count(info.keyCount - 1)}.`;
}

function describeSigner() {
  const { signer, signerWarning } = client;
  const parts = [];
  if (signer !== null) {
    const when = `number ${signer.sequence} of ${signer.time.toISOString().slice(0, 16).replace('T', ' ')} UTC`;
    parts.push(`This version is signed, as ${when}, with the key ${signer.key}` +
      (serverKey ? ', which is the one in this page\u2019s address.' : '.'));
    if (!signer.isChecked) parts.push('This browser cannot check the signature.');
  }
  if (signerWarning !== null) parts.push(`Warning: ${signerWarning}.`);
  if (parts.length > 0) parts.push('No key protects against the server that sent this page: it could send another page.');
  byId('signer').textContent = parts.join(' ');
  byId('signer').hidden = parts.length === 0;
}

/** What was agreed to once need not be asked again. */
const consent = {
  key: `blindfuse-download:${serverUrl}`,
  given(bytes) {
    try {
      return Number(localStorage.getItem(this.key)) >= bytes;
    } catch {
      return false;
    }
  },
  give(bytes) {
    try {
      localStorage.setItem(this.key, String(bytes));
    } catch {
      // The next attempt asks for it again.
    }
  },
};

function agreeToDownload(bytes) {
  if (bytes <= ASK_ABOVE_BYTES || consent.given(bytes)) return Promise.resolve();
  return new Promise((resolve) => {
    setup.ask('This database wants a large download first',
      `Before the first look-up this browser needs data of ${size(bytes)}, once for each version of the database. ` +
      'They are the same for everyone, so fetching them says nothing about what you will ask.',
      `Download ${size(bytes)}`, () => {
        consent.give(bytes);
        resolve();
      });
  });
}

function onProgress(of, report) {
  if (of !== attempt) return;
  if (looking) explainWait(report);
  setup.progress(report);
}

/** Why a look-up takes longer than usual. */
function explainWait({ stage, done, total }) {
  const isLong = done < total && performance.now() - lookingSince > LONG_WAIT_MS;
  // A new epoch: the client fetches what changed by itself.
  if (stage === 'fetching-hints' && done < total && !setup.isAbout(NEW_VERSION)) {
    setup.busy(NEW_VERSION, 'Fetching what changed; your look-up goes on by itself.');
  } else if (stage === 'preparing-queries' && isLong && !setup.isVisible) {
    setup.busy('Making a query', 'The one made ahead is used up: each is used once, so that no two can be compared.');
  } else if (stage === 'waiting-for-server') {
    say('The server is busy; asking again in a moment …');
  }
}

async function loadClient() {
  try {
    return await import('../client/blindfuse.js');
  } catch {
    // Browsers remember for the life of a page that a module did not load.
    throw Object.assign(new Error('the client does not load'), { code: 'connection', needsReload: true });
  }
}

/** Connects and downloads; false when another attempt has begun meanwhile. */
async function getReady(mine) {
  client?.close();
  client = null;
  for (const name of settings.keys()) {
    // A misspelt name must not switch the check off.
    if (name !== 'server-key') throw new Error(`This page has no setting ${name}. Its address may end with #server-key=KEY.`);
  }
  setup.busy('Getting ready', 'Asking the server which database it has.');
  const { connect } = await loadClient();
  const connected = await connect(serverUrl, {
    apiKey, serverKey, storage: 'persistent', prepareAhead: 1, onProgress: (report) => onProgress(mine, report),
  });
  if (mine !== attempt) {
    connected.close();
    return false;
  }
  client = connected;
  describe(client.info);
  await agreeToDownload(client.info.hintBytes);
  setup.busy('Getting ready', 'Once for each version of the database, and the same whatever you will look up.');
  await client.sync({ verify });
  verify = false;
  if (client.preparedCount === 0) await client.prepare(1);
  if (mine !== attempt) return false;
  setup.hide();
  const kept = client.storage === 'persistent' ? 'What it fetched is kept in this browser for the next visit.' :
    `The next visit downloads again: ${client.storageReason}.`;
  say(`Ready. ${kept}`);
  return true;
}

function wantsKey(error) {
  // The client refuses what cannot be a key before it asks.
  return error.status === 401 || (error.code === 'input' && apiKey !== undefined && !client);
}

/** Says what went wrong, and offers to try `again`; with an API key, or for a new epoch, all from the start. */
function report(error, again) {
  say('');
  if (wantsKey(error)) {
    const text = apiKey === undefined ? 'It tells the server who asks, not what. It is not stored.' :
      'The server does not know that one. Check it, and try again.';
    setup.askForKey('This server wants an API key', text, (key) => {
      apiKey = key;
      start();
    });
    return;
  }
  const texts = {
    connection: ['The server does not answer', 'It may have stopped, or the network is down.'],
    busy: ['The server is busy', 'It has more look-ups waiting than it takes. Yours was not answered.'],
    signature: ['This database is not to be trusted', error.message],
    cache: ['What this browser kept of the database is damaged', 'They are fetched again, as far as they need to be.'],
    resource: ['This browser cannot do it', error.message],
    'epoch-gone': [NEW_VERSION, 'Fetch it, and look up again.'],
  };
  const [title, text] = error.isOutdated ? ['This page was updated', 'Load the new one to go on.'] :
    texts[error.code] ?? ['That did not work', error.message];
  verify ||= error.code === 'cache';
  const fromStart = verify || error.code === 'epoch-gone';
  const act = error.needsReload || error.isOutdated ? () => location.reload() : fromStart ? start : again;
  setup.trouble(title, text, error.isOutdated ? 'Reload' : 'Try again', act);
}

async function start() {
  const mine = ++attempt;
  isReady = false;
  try {
    isReady = await getReady(mine);
  } catch (error) {
    if (mine === attempt) report(error, start);
  }
  if (isReady && pending !== null) lookUp(pending);
}

function keyError(text) {
  byId('key-error').textContent = text;
  byId('key-error').hidden = text === '';
  if (text === '') return input.removeAttribute('aria-invalid');
  input.setAttribute('aria-invalid', 'true');
  input.focus();
}

/** The key as the client takes it; undefined with a word to the visitor when it is none. */
function checkedKey(text) {
  const isIndex = client?.info.kind === 'index';
  const key = isIndex ? text.trim() : text;
  if (key === '') return keyError(isIndex ? 'Type a number first.' : 'Type a key first.');
  if (isIndex && !/^\d{1,15}$/.test(key)) return keyError('This database has numbers for keys, as in 42.');
  keyError('');
  return key;
}

function setLooking(value) {
  looking = value;
  lookingSince = performance.now();
  button.setAttribute('aria-disabled', String(value));
  button.textContent = value ? 'Looking …' : 'Look up';
}

function showAnswer(key, result, seconds) {
  pending = null;
  setup.hide();
  answer.replaceChildren(answerOf(key, result.value, client.info.kind === 'index'));
  evidence.add(key, result);
  const beforehand = seconds < result.prepareSeconds + result.serverSeconds + result.decodeSeconds;
  say(`Answered in ${duration(seconds)}${beforehand ? '; the query had been made before you asked' : ''}.`);
  describe(client.info);
  // The field is ready for the next key, but without the keyboard of a phone over the answer.
  if (document.activeElement === input && matchMedia('(pointer: fine)').matches) input.select();
}

async function lookUp(key) {
  if (looking) return;
  pending = key;
  answer.replaceChildren();
  if (!isReady) return say('It will be looked up as soon as the page is ready.');
  setup.hide();
  setLooking(true);
  say('Looking it up …');
  try {
    const result = await client.lookUp(client.info.kind === 'index' ? Number(key) : key, { inspect: true });
    showAnswer(key, result, (performance.now() - lookingSince) / 1000);
  } catch (error) {
    report(error, () => lookUp(key));
  } finally {
    setLooking(false);
  }
}

form.addEventListener('submit', (event) => {
  event.preventDefault();
  const key = checkedKey(input.value);
  if (key !== undefined) return lookUp(key);
  if (looking) return;
  // An answer next to the error would look like one to it.
  pending = null;
  answer.replaceChildren();
  say('');
});
input.addEventListener('input', () => keyError(''));

byId('command').textContent = `blindfuse-client get ${serverUrl.replace(/\/$/, '')} KEY` +
  (serverKey ? ` --server-key ${serverKey}` : '');
addEventListener('hashchange', () => location.reload()); // another key counts at once
const missing = unsupported();
if (missing !== null) {
  setup.trouble('This browser cannot do it', `${missing} Any current browser can.`);
  form.hidden = true;
} else {
  // After the first picture: what the client begins with would keep the browser from drawing it.
  requestAnimationFrame(() => setTimeout(start));
}
