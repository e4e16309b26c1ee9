// Copyright the blindfuse authors. SPDX-License-Identifier: Apache-2.0

// A worker that helps worker.js to prepare queries: {module, build} first, then {id, first, last, secrets} is answered by
// {id, products}, or by {id, broken}, after which it is not to be asked again.

import {buildId} from './build_id.js';
import {callCore, startCore} from './core_module.js';

let core;

self.onmessage = async ({data}) => {
  try {
    if (data.module) {
      if (data.build !== buildId) throw new Error('it is of another build');
      core = startCore(data.module, {exchange: null, progress: null});
      return;
    }
    const {id, first, last} = data;
    const {bytes} = callCore(await core, {op: 'prepareThere', first, last}, [data.secrets]);
    self.postMessage({id, products: bytes}, [bytes.buffer]);
  } catch (error) {
    self.postMessage({id: data.id, broken: String(error?.message ?? error)});
  } finally {
    data.secrets?.fill(0);
  }
};
