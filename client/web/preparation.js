// Copyright the blindfuse authors. SPDX-License-Identifier: Apache-2.0

// Queries, prepared by as many workers as there are processors, up to four: it is nearly all of the time that a
// look-up takes, and a vector here has a quarter of the width that the native client's has. Those of databases in the
// mode `packed` take so little that one worker makes them.

import {buildId} from './build_id.js';
import {BrokenCore, callCore} from './core_module.js';
import {callWithSignatures} from './signatures.js';

const workersMax = 4;
const panelsMin = 8; // a few milliseconds: less is not worth a message

class Helper {
  constructor(module) {
    this.worker = new Worker(new URL('./helper.js', import.meta.url), {type: 'module', name: 'blindfuse helper'});
    this.worker.postMessage({module, build: buildId});
    this.isBroken = false;
    this.hasWorked = false;
    this.lastId = 0;
    this.asked = null; // {id, resolve} of the part that it works on
    this.worker.onerror = (event) => {
      event.preventDefault?.();
      this.break();
    };
    this.worker.onmessageerror = () => this.break();
    this.worker.onmessage = ({data: {id, products}}) => {
      if (!products) this.break();
      else if (id === this.asked?.id) this.settle(products);
      else products.fill(0);
    };
  }

  break() {
    this.isBroken = true;
    this.worker.terminate();
    this.settle(null);
  }

  settle(products) {
    if (products) this.hasWorked = true;
    this.asked?.resolve(products);
    this.asked = null;
  }

  // Null when it cannot.
  multiply(first, last, secrets) {
    if (this.isBroken) return null;
    const copy = secrets.slice();
    return new Promise((resolve) => {
      this.asked = {id: ++this.lastId, resolve};
      this.worker.postMessage({id: this.lastId, first, last, secrets: copy}, [copy.buffer]);
    });
  }
}

// Other messages get their turn.
const channel = new MessageChannel();
function turn() {
  return new Promise((resolve) => {
    channel.port1.onmessage = resolve;
    channel.port2.postMessage(null);
  });
}

export class Preparer {
  // tell(done, total) of the work; refresh() as callWithSignatures() has it.
  constructor(core, module, tell, refresh) {
    this.core = core;
    this.module = module;
    this.tell = tell;
    this.refresh = refresh;
    this.helpers = [];
    this.helpersMax = Math.min(self.navigator?.hardwareConcurrency ?? 1, workersMax) - 1;
  }

  // Starts the helpers that are missing. prepare() does, too, where it needs them; before, they get ready meanwhile.
  addHelpers() {
    try {
      while (this.helpers.length < this.helpersMax) this.helpers.push(new Helper(this.module));
    } catch {
      // Workers of this browser cannot have workers, so the number stays as it is.
      this.helpersMax = this.helpers.length;
    }
  }

  // Replaces helpers that broke, except those that never worked.
  dropBrokenHelpers() {
    const broken = this.helpers.filter((helper) => helper.isBroken);
    this.helpersMax -= broken.filter((helper) => !helper.hasWorked).length;
    this.helpers = this.helpers.filter((helper) => !helper.isBroken);
  }

  // Makes `count` more queries. Gives the last answer.
  async prepare(count) {
    const begun = await callWithSignatures(this.core, {op: 'beginPrepare', count}, [], this.refresh);
    const {panels, bytes: secrets} = begun;
    if (panels === 0) return begun; // all is done, as packing keys are made here
    this.addHelpers();
    const size = Math.max(panelsMin, Math.ceil(panels / (8 * (this.helpers.length + 1))));
    let left = [];
    for (let first = 0; first < panels; first += size) left.push([first, Math.min(first + size, panels)]);
    left.reverse();
    let done = 0;
    const failures = [];
    const finish = ([first, last]) => this.tell((done += last - first), panels);

    const here = async () => {
      for (let part; (part = left.pop()); await turn()) {
        callCore(this.core, {op: 'prepareHere', first: part[0], last: part[1]});
        finish(part);
      }
    };
    const there = async (helper) => {
      for (let part; (part = left.pop());) {
        const products = await helper.multiply(part[0], part[1], secrets);
        if (!products) {
          if (failures.length === 0) left.push(part);
          return;
        }
        try {
          callCore(this.core, {op: 'addPrepared', first: part[0], last: part[1]}, [products]);
        } finally {
          products.fill(0);
        }
        finish(part);
      }
    };
    // A failure hands out no more parts, and is thrown once all have ended.
    const fail = (error) => {
      failures.push(error);
      left = [];
    };
    try {
      await Promise.all([here(), ...this.helpers.map(there)].map((loop) => loop.catch(fail)));
      if (failures.length > 0) throw failures.find((error) => error instanceof BrokenCore) ?? failures[0];
      await here(); // the parts that a broken helper left
      return callCore(this.core, {op: 'endPrepare'});
    } catch (error) {
      if (!(error instanceof BrokenCore)) callCore(this.core, {op: 'dropPrepare'});
      throw error;
    } finally {
      secrets.fill(0);
      this.dropBrokenHelpers();
    }
  }
}
