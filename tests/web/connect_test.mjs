// connect() where there is no browser: node connect_test.mjs
import assert from 'node:assert';
import {readFileSync} from 'node:fs';
import {test} from 'node:test';

const moduleOf = (source) => 'data:text/javascript,' + encodeURIComponent(source).replaceAll("'", '%27');
const sourceOf = (name) => readFileSync(new URL(`../../client/web/${name}`, import.meta.url), 'utf8');

// The modules have no package that would say that they are ones, and one of them is made by a build.
const source = sourceOf('blindfuse.js')
  .replaceAll(`'./errors.js'`, `'${moduleOf(sourceOf('errors.js'))}'`)
  .replaceAll(`'./build_id.js'`, `'${moduleOf("export const buildId = 'test';")}'`);
const {connect} = await import(moduleOf(source));

test('a program without web workers is told so', async () => {
  assert.equal(typeof WebAssembly, 'object');
  assert.equal(typeof Worker, 'undefined');
  await assert.rejects(connect('http://test'), {
    code: 'resource', message: 'this client runs in browsers alone: there are no web workers here',
  });
});

test('a browser without WebAssembly is told so', async () => {
  const {WebAssembly} = globalThis;
  delete globalThis.WebAssembly;
  await assert.rejects(connect('http://test'), {code: 'resource', message: /has no WebAssembly/});
  globalThis.WebAssembly = WebAssembly;
});
