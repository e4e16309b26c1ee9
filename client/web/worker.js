// Copyright the blindfuse authors. SPDX-License-Identifier: Apache-2.0

// The worker: the client library, which waits for its requests, and a queue before it.
//
// A message {id, op, ...} is answered by {id, reply} or {id, error}; {progress} comes in between. Messages wait their
// turn while the library works. The first that it sends is {started, build}: a page of another build is not to ask it.
// While none waits, queries are prepared ahead. After an error with `isFatal`, which may come without an id, this
// worker answers nothing more.

import {buildId} from './build_id.js';
import {BrokenCore, callCore, compileCore, startCore} from './core_module.js';
import {exchange} from './exchange.js';
import {HintStore, isSigners} from './hint_store.js';
import {Preparer} from './preparation.js';
import {callWithSignatures} from './signatures.js';

// ClientStage, in its order (client/include/blindfuse/progress.h).
const stages = ['waiting-for-lock', 'fetching-hints', 'preparing-queries', 'waiting-for-server', 'waiting-for-answer',
  'checking-hints', 'decoding-answers'];
const folder = '/hints';
const queriesAtOnce = 64; // they are prepared in one pass, and are in memory at once
const largeQueriesAtOnce = 4; // where each is for several keys
const preparedMax = 1000;
const isFixed = (path) => path.endsWith('.hint');
const isPart = (path) => path.includes('/.partial-'); // of a hint (client/hint_download.cpp)

const fromServer = ['protocol', 'signature', 'server', 'epoch-gone']; // errors that an answer is the reason of

let core;
let preparer;
let store;
let keptEpoch = null; // the epoch of the stored hints
let hasFetched = false; // more of them than the store has
let wantedAhead = 0;
let hasAnswered = false;
let prepared = 0;
let info = null;
let signer = null;
let isConnected = false;
let keptSigners = null; // the text that the store has
let isDead = false;
let mayUseCache = true; // the browser's own, of what the server answered earlier
const waiting = [];
let isWorking = false;

const tell = (stage, done, total) => self.postMessage({progress: {stage, done, total}});

// The members that every answer has, a failure's too.
function note({info: newInfo, signer: newSigner, prepared: newPrepared}) {
  if (newInfo) info = newInfo;
  if (newSigner) signer = newSigner;
  if (newPrepared !== undefined) prepared = newPrepared;
}

async function call(request, keys) {
  try {
    const reply = await callWithSignatures(core, request, keys, shareSigners);
    note(reply);
    return reply;
  } catch (error) {
    note(error);
    throw error;
  }
}

async function prepare(count) {
  if (count === 0) return {info, prepared};
  try {
    const reply = await preparer.prepare(count);
    note(reply);
    return reply;
  } catch (error) {
    note(error);
    throw error;
  }
}

function pathsUnder(path, under = '') {
  const paths = [];
  for (const name of core.FS.readdir(path)) {
    if (name.endsWith('.lock') || (name.startsWith('.') && !isPart(`/${name}`))) continue;
    const inner = `${path}/${name}`;
    if (core.FS.isDir(core.FS.stat(inner).mode)) paths.push(...pathsUnder(inner, `${under}${name}/`));
    else paths.push(under + name);
  }
  return paths;
}

// Makes the signers that this tab and others have seen the same in the library and in the store.
async function shareSigners() {
  if (!isConnected || isDead) return;
  const path = `${core.FS.readdir(folder).find((name) => !name.startsWith('.'))}/signers.json`;
  let failure = null;
  const merge = (bytes) => {
    try {
      return callCore(core, {op: 'mergeSigners'}, bytes ? [bytes] : []).bytes;
    } catch (error) {
      failure = error;
      return null;
    }
  };
  await store.mergeSigners(path, merge);
  if (failure !== null) throw failure;
  keptSigners = signersText();
}

// Null while no signature was seen.
function signersText() {
  const path = pathsUnder(folder).find(isSigners);
  return path === undefined ? null : core.FS.readFile(`${folder}/${path}`, {encoding: 'utf8'});
}

async function keepSigners() {
  if (signersText() !== keptSigners) await shareSigners();
}

const readers = (paths) => new Map(paths.map((path) => [path, () => core.FS.readFile(`${folder}/${path}`)]));

async function keep(epoch) {
  if (epoch === keptEpoch) return;
  const paths = pathsUnder(folder).filter((path) => !isSigners(path));
  if (!paths.some((path) => path.endsWith('manifest.json'))) return; // nothing fetched yet
  await store.save(readers(paths), isFixed);
  keptEpoch = epoch;
  hasFetched = false;
}

// The bytes that came before a download broke: the next attempt, which may be of another worker, goes on from there.
async function keepBegun() {
  if (!hasFetched || isDead) return;
  hasFetched = false;
  const isHint = (path) => isFixed(path) || isPart(path);
  await store.add(readers(pathsUnder(folder).filter(isHint)), isFixed, isHint);
}

function values(reply) {
  let at = 0;
  const next = (size) => reply.bytes.slice(at, (at += size));
  const found = reply.values.map((size) => (size < 0 ? null : next(size)));
  const inspected = (reply.sizes ?? []).map(next);
  return {values: found, costs: reply.costs, query: inspected[0], response: inspected[1]};
}

// The first `taken` of the keys: all of them, unless their answers take too much memory. Sends every request before any
// answer is decoded, so that the server does not see how long decoding takes. For the same reason an error of decoding is
// a result: the other keys are asked for all the same.
async function lookUpSome(keys, inspect) {
  let taken;
  try {
    let queriesLeft;
    ({taken, queriesLeft} = await call({op: 'beginLookUp', inspect}, keys));
    while (queriesLeft > 0) {
      const count = Math.min(queriesLeft, info.keysPerRequest > 1 ? largeQueriesAtOnce : queriesAtOnce);
      if (prepared < count) await prepare(count - prepared);
      ({queriesLeft} = await call({op: 'ask', count}));
    }
  } catch (error) {
    if (!(error instanceof BrokenCore)) await call({op: 'dropLookUp'});
    throw error;
  }
  try {
    return {taken, reply: await call({op: 'endLookUp'})};
  } catch (error) {
    if (error instanceof BrokenCore) throw error;
    return {taken, error};
  }
}

const operations = {
  async connect({storage, prepareAhead, ...request}) {
    const {url, timeoutSeconds} = request;
    const module = await compileCore(timeoutSeconds * 1000);
    core = await startCore(module, {
      exchange: (request) => exchange({...request, isFresh: !mayUseCache && request.method === 'GET'}),
      progress(stage, done, total) {
        hasFetched ||= stages[stage] === 'fetching-hints';
        tell(stages[stage], done, total);
      },
    });
    store = new HintStore(url, storage);
    await store.load((path, bytes) => {
      const whole = `${folder}/${path}`;
      core.FS.mkdirTree(whole.slice(0, whole.lastIndexOf('/')));
      core.FS.writeFile(whole, bytes, {canOwn: true});
    });
    wantedAhead = prepareAhead;
    const reply = await call({op: 'connect', folder, ...request});
    isConnected = true;
    preparer = new Preparer(core, module, (done, total) =>
      tell('preparing-queries', Math.round((done / total) * info.rowCount), info.rowCount), shareSigners);
    if (info?.mode === 'hint') preparer.addHelpers();
    return reply;
  },
  async sync({verify}) {
    if (verify) store.forget(); // the stored hints may be the wrong ones
    const reply = await call({op: 'sync', verify});
    keptEpoch = null;
    await keep(reply.info.epoch);
    return reply;
  },
  async lookUp({keys, inspect}) {
    const all = {values: [], costs: []};
    let firstError = null;
    for (let at = 0; at < keys.length;) {
      const {taken, reply, error} = await lookUpSome(keys.slice(at), inspect);
      at += taken;
      if (error) {
        firstError ??= error;
        continue;
      }
      const {values: found, costs, query, response} = values(reply);
      reply.bytes.fill(0);
      for (const value of found) all.values.push(value);
      for (const cost of costs) all.costs.push(cost);
      Object.assign(all, {query, response});
    }
    if (firstError !== null) throw firstError;
    hasAnswered = true;
    return {...all, info, signer, prepared};
  },
  async prepare({count}) {
    if (prepared + count > preparedMax) {
      throw {
        code: 'input',
        message: `${prepared} queries are ready, and more than ${preparedMax} cannot be; use them first`,
      };
    }
    return prepare(count);
  },
};

// The error as the page gets it. A module that broke answers nothing more, and this worker with it.
function reportOf(error) {
  if (error instanceof BrokenCore) isDead = true;
  const isReport = typeof error?.code === 'string' && typeof error.message === 'string' && !(error instanceof Error);
  const report = isReport ? {...error} : {
    code: 'resource',
    message: `the client's worker failed (${error?.message ?? error}); try again, or reload the page`,
  };
  return {...report, isFatal: isDead};
}

async function answer({id, op, ...request}) {
  if (isDead) return; // the page has been told, and asks another worker
  try {
    const reply = await operations[op](request);
    await keepSigners();
    mayUseCache = true;
    self.postMessage({id, reply: {...reply, bytes: undefined, storage: storageOf()}});
    // Hints are stored after the answer, since no caller waits for that.
    if (op !== 'connect') await keep(reply.info.epoch);
    self.postMessage({prepared, storage: storageOf()});
  } catch (error) {
    const report = reportOf(error);
    // A wrong answer may be in the browser's cache, and would come from there again, whatever the server has by then.
    // After any other error the cache is used again: a server may not let pages of other origins pass it over.
    mayUseCache = !fromServer.includes(report.code);
    // Storing comes first: a page that gets the error may end this worker.
    await keepBegun().catch(() => {});
    self.postMessage({id, error: report});
  }
}

const storageOf = () => ({
  kind: store.isPersistent ? 'persistent' : 'memory',
  reason: store.reason,
});

async function work() {
  if (isWorking) return;
  isWorking = true;
  while (waiting.length > 0) await answer(waiting.shift());
  isWorking = false;
  if (hasAnswered && !isDead) setTimeout(prepareAhead, 0);
}

// Prepares one query a turn, so that a call that comes meanwhile waits for one at most.
async function prepareAhead() {
  if (isWorking || isDead || waiting.length > 0 || prepared >= wantedAhead) return;
  isWorking = true;
  try {
    await prepare(1);
    self.postMessage({prepared, storage: storageOf()});
  } catch (error) {
    // The next look-up meets the same error and reports it; but a worker that broke is to be replaced.
    wantedAhead = 0;
    const report = reportOf(error);
    if (report.isFatal) self.postMessage({error: report});
  }
  isWorking = false;
  work();
}

self.onmessage = ({data}) => {
  waiting.push(data);
  work();
};
self.postMessage({started: true, build: buildId});
