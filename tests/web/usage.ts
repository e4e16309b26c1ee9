// What blindfuse.d.ts declares, used as it is meant, and as it is not: compiled in a test, never run.
import {connect, BlindfuseError, NotAskedError, SignatureError, type Answer, type Client, type DatabaseInfo,
  type Progress, type Signer} from '../../client/web/blindfuse.js';

export async function use(signal: AbortSignal): Promise<void> {
  const words: Client = await connect('https://words.example', {
    onProgress: ({stage, done, total}: Progress) => console.log(stage, done / total),
    serverKey: 'ab'.repeat(32), allowRollback: false, storage: 'memory', prepareAhead: 2, timeoutSeconds: 20, apiKey: 'key', signal,
  });
  const info: DatabaseInfo = words.info;
  const bytes: Uint8Array | null = await words.get('serendipity');
  const text: string | null = await words.getText(new Uint8Array([1, 2, 3]), {signal});
  const many: (Uint8Array | null)[] = await words.getMany(info.kind === 'index' ? [5, 6n] : ['owl', 'nowl']);
  const answer: Answer = await words.lookUp('x', {inspect: true});
  const answers: Answer[] = await words.lookUpMany(['owl', new Uint8Array([1])], {signal});
  console.log(answers.filter(({asked}) => !asked).length, info.keysPerRequest + info.bucketCount);
  await words.prepare(3);
  try {
    await words.sync({verify: true});
  } catch (error) {
    if (error instanceof NotAskedError) console.log(error.code === 'not-asked');
    if (error instanceof SignatureError) console.log(error.code === 'signature');
    if (error instanceof BlindfuseError) console.log(error.code === 'cache', error.message);
  }
  const signer: Signer | null = words.signer;
  console.log(signer?.key, signer?.time.getTime(), words.signerWarning);
  console.log(bytes, text, many, answer.query?.length, words.preparedCount, words.storageReason);
  words.close();

  // @ts-expect-error
  await words.get({});
  // @ts-expect-error
  await connect('x', {storage: 'disk'});
  // @ts-expect-error
  words.info.rowCount = 3;
  // @ts-expect-error
  const wrong: string = await words.get('x');
  console.log(wrong);
}
