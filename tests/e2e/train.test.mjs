// A model from text to answers with the real binary: vocabulary, training, kill -9, resumption, and the engine reads it.
import assert from 'node:assert/strict';
import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { after, before, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { Molly } from './molly.mjs';

const build = process.env.MOLLY_BUILD ?? path.resolve(import.meta.dirname, '../../build/release');
const binary = path.join(build, 'molly');
const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'molly-train-'));
const at = (...names) => path.join(folder, ...names);
const environment = { ...process.env, LANG: 'C.UTF-8', HOME: folder };
const run = (...words) => execFileSync(binary, words, { env: environment, encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'] });

/** Documents of made-up sentences; the same every time. */
function write_text() {
    const letters = 'abcdefgilmnoprstuvz';
    const word = (n) => letters[n % 19] + 'aeiou'[n % 5] + letters[Math.floor(n / 19) % 19] + 'aeiou'[Math.floor(n / 7) % 5];
    const sentence = (number) => `${Array.from({ length: 12 }, (_, i) => word((number * 12 + i) * 37 % 900)).join(' ')} ${number * 37 % 997}.`;
    const documents = Array.from({ length: 400 }, (_, number) => Array.from({ length: 8 }, (_, i) => sentence(number * 8 + i)).join('\n'));
    fs.writeFileSync(at('text.txt'), documents.join('\n\n'));
}

const training = (out) => ['train', 'base', '--text', at('text.txt'), '--tokenizer', at('tokenizer.gguf'), '--preset', 'tiny',
    '--tokens', '20480', '--threads', '2', '--checkpoint-minutes', '0', '--out', at(out), '--name', 'molly-e2e'];

before(() => {
    write_text();
    run('train', 'tokenizer', at('text.txt'), '--vocabulary', '512', '--out', at('tokenizer.gguf'));
});
after(() => fs.rmSync(folder, { recursive: true, force: true }));

test('a run that was killed goes on to the same bytes', async () => {
    run(...training('whole'));
    const killed = spawn(binary, training('parts'), { env: environment, stdio: 'ignore' });
    const exited = once(killed, 'exit');
    while (!fs.existsSync(at('parts/checkpoint.bin')) && killed.exitCode === null) await sleep(5);
    killed.kill('SIGKILL');
    await exited;
    const cut = JSON.parse(run('train', 'status', at('parts'), '--json'));
    assert.ok(!cut.finished && !cut.running && cut.checkpoint > 0 && cut.checkpoint < cut.steps, JSON.stringify(cut));
    run('train', 'resume', at('parts'));
    assert.ok(JSON.parse(run('train', 'status', at('parts'), '--json')).finished);
    for (const file of ['checkpoint.bin', 'model-f16.gguf', 'model-q8_0.gguf']) {
        assert.ok(fs.readFileSync(at('whole', file)).equals(fs.readFileSync(at('parts', file))), file);
    }
});

test('the engine answers with the model', async () => {
    const molly = await Molly.start({ engine: { model: at('whole/model-q8_0.gguf') } });
    try {
        const answer = await molly.command('ask', 'la casa', '--max-tokens', '8', '--json');
        assert.equal(answer.status, 0, answer.stderr);
        assert.ok(JSON.parse(answer.stdout).answer_tokens > 0);
    } finally {
        await molly.remove();
    }
});

test('what cannot be trained is refused with a cure', () => {
    const refused = (words) => {
        try {
            run(...words);
        } catch (error) {
            return error;
        }
        return assert.fail(`molly ${words.join(' ')} went through`);
    };
    assert.match(refused(training('whole')).stderr, /molly train resume/);
    const missing = training('other');
    missing[3] = at('none.txt');
    assert.match(refused(missing).stderr, /cannot read the text file/);
    assert.equal(refused(['train', 'status', at('nowhere')]).status, 4);
});
