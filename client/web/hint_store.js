// Copyright the blindfuse authors. SPDX-License-Identifier: Apache-2.0

// Hints from one visit to the next: the files of the client library's cache in IndexedDB.
//
// One object store, a record a file, keyed [address, path]. A save is one transaction, so that what another tab reads
// is one epoch's whole; and every hint is compared with its hash before the first query, whatever became of it here.
//
// The signers that were seen (client/manifest_guard.h) are next to the hints, in a record of their own: a save leaves
// them alone.

const databaseName = 'blindfuse';
const storeName = 'files';

export const isSigners = (path) => path.endsWith('/signers.json');

// The reason why hints cannot be kept, in words for a person.
function reasonOf(error) {
  if (error?.name === 'QuotaExceededError') return 'the browser has no room left for them: free some, or allow more';
  return `the browser keeps nothing for this page (${error?.name ?? error}): leave private browsing, or allow site data`;
}

function settled(request) {
  return new Promise((resolve, reject) => {
    request.onsuccess = () => resolve(request.result);
    request.onerror = () => reject(request.error);
  });
}

function finished(transaction) {
  return new Promise((resolve, reject) => {
    transaction.oncomplete = () => resolve();
    transaction.onabort = () => reject(transaction.error ?? new Error('aborted'));
  });
}

async function open() {
  const request = indexedDB.open(databaseName, 1);
  request.onupgradeneeded = () => request.result.createObjectStore(storeName);
  const blocked = new Promise((_, reject) => {
    request.onblocked = () => reject(new Error('blocked'));
  });
  const database = await Promise.race([settled(request), blocked]);
  // Another tab that wants a newer version gets it.
  database.onversionchange = () => database.close();
  return database;
}

const recordsOf = (address) => IDBKeyRange.bound([address, ''], [address, '\uffff']);

// The cached hints of one server. Where nothing can be stored, everything works in memory, and `reason` says why.
export class HintStore {
  constructor(address, wanted) {
    this.address = address;
    this.reason = wanted === 'memory' ? 'asked for' : null;
    this.saved = new Set(); // paths whose bytes never change
  }

  get isPersistent() {
    return this.reason === null;
  }

  // Calls put(path, bytes) for every file.
  async load(put) {
    if (!this.isPersistent) return;
    try {
      await this.locked(async () => {
        const database = await open();
        try {
          const store = database.transaction(storeName).objectStore(storeName);
          const keys = await settled(store.getAllKeys(recordsOf(this.address)));
          for (const key of keys) {
            // Hints are read one at a time: all at once would be in memory twice.
            const bytes = await settled(
              database.transaction(storeName).objectStore(storeName).get(key));
            if (!(bytes instanceof Uint8Array)) continue;
            put(key[1], bytes);
            this.saved.add(key[1]);
          }
        } finally {
          database.close();
        }
      });
    } catch (error) {
      this.reason = reasonOf(error);
    }
  }

  // Makes what is kept be `files`, a Map from paths to functions that give their bytes. A path with `isFixed` has the
  // same bytes whenever it is there.
  async save(files, isFixed) {
    await this.write(files, isFixed, () => true);
  }

  // Puts `files` next to those that are kept. Removes files that this object loaded or put there, where mayGo(path).
  async add(files, isFixed, mayGo) {
    await this.write(files, isFixed, (path) => this.saved.has(path) && mayGo(path));
  }

  // Makes what is kept of signers be merge(bytes) of what is there, or of nothing, in one transaction: tabs lose
  // nothing that another has seen. Nothing is kept where merge() gives null; where nothing can be kept, it is not called.
  async mergeSigners(path, merge) {
    if (!this.isPersistent) return;
    try {
      const database = await open();
      try {
        const transaction = database.transaction(storeName, 'readwrite');
        const done = finished(transaction);
        try {
          const store = transaction.objectStore(storeName);
          const there = await settled(store.get([this.address, path]));
          const merged = merge(there instanceof Uint8Array ? there : null);
          if (merged !== null) store.put(merged, [this.address, path]);
        } catch (error) {
          done.catch(() => {});
          transaction.abort();
          throw error;
        }
        await done;
      } finally {
        database.close();
      }
    } catch (error) {
      this.reason = reasonOf(error);
    }
  }

  // Removes what is not among `files`, and mayGo(path).
  async write(files, isFixed, mayGo) {
    if (!this.isPersistent) return;
    try {
      await this.locked(async () => {
        const database = await open();
        try {
          const transaction = database.transaction(storeName, 'readwrite');
          const done = finished(transaction);
          let there;
          try {
            const store = transaction.objectStore(storeName);
            there = new Set((await settled(store.getAllKeys(recordsOf(this.address)))).map((key) => key[1]));
            for (const path of there) {
              if (files.has(path) || isSigners(path) || !mayGo(path)) continue;
              store.delete([this.address, path]);
              there.delete(path);
            }
            for (const [path, bytes] of files) {
              if (isFixed(path) && there.has(path) && this.saved.has(path)) continue;
              store.put(bytes(), [this.address, path]);
            }
          } catch (error) {
            // Either all is stored or nothing: entries put before the error would otherwise be kept by themselves.
            done.catch(() => {});
            transaction.abort();
            throw error;
          }
          await done;
          this.saved = new Set([...files.keys(), ...[...this.saved].filter((path) => there.has(path))]);
        } finally {
          database.close();
        }
      });
    } catch (error) {
      this.reason = reasonOf(error);
    }
  }

  // The next save writes everything.
  forget() {
    this.saved.clear();
  }

  // Tabs take turns where the browser has locks.
  locked(work) {
    const locks = self.navigator?.locks;
    return locks ? locks.request('blindfuse ' + this.address, work) : work();
  }
}
