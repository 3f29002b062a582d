// A model from text to answers with the real binary: vocabulary, training, kill -9, resumption, and the engine reads it.
import assert from 'node:assert/strict';
import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { after, before, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { Molly, model } from './molly.mjs';

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

/** Rows whose answer is always the same, which even this small model learns. */
function write_rows(file, pairs = false) {
    const rows = Array.from({ length: 40 }, (_, i) => (pairs ? { prompt: `tono ${i}`, chosen: 'casa', rejected: 'mare' }
        : { messages: [{ role: 'user', content: `tono ${i}` }, { role: 'assistant', content: 'mare mare' }], class: 'standard' }));
    fs.writeFileSync(at(file), rows.map((row) => JSON.stringify(row)).join('\n'));
    return at(file);
}

test('an adapter is learned beside a running server, which serves it at once', async () => {
    const molly = await Molly.start({});  // the base is the test model: the one trained above knows too little
    // Here --data is the rows; the data folder is named before the command.
    const train = (...words) => molly.run(['--config', path.join(molly.folder, 'molly.toml'), '--data', molly.data, 'train', ...words]);
    try {
        const learn = async (...words) => {
            const done = await train(...words, '--base', model, '--threads', '2', '--json');
            assert.equal(done.status, 0, done.stderr);
            return JSON.parse(done.stdout.trim().split('\n').at(-1));
        };
        const settings = ['--rank', '8', '--steps', '120', '--learning-rate', '1e-2'];
        const made = await learn('lora', '--data', write_rows('rows.jsonl'), '--name', 'gado', '--domain', 'test', ...settings);
        assert.equal(made.adapter, 'gado@1.0.0');
        assert.ok(made.held_out_loss_adapter < made.held_out_loss_base / 4, JSON.stringify(made));
        const answer = await molly.command('ask', 'tono 99', '--model', 'local/gado', '--max-tokens', '8', '--json');
        assert.equal(answer.status, 0, answer.stderr);
        assert.match(JSON.parse(answer.stdout).answer, /^\s*mare mare/);
        const shown = JSON.parse((await molly.command('adapters', 'show', 'gado', '--json')).stdout);
        assert.equal(shown.training.examples, 36);
        assert.equal(shown.domain, 'test');
        assert.equal(shown.label.class, 'standard');
        const preferred = await learn('dpo', '--data', write_rows('pairs.jsonl', true), '--name', 'gado', '--from', made.file, '--rank', '8', '--steps', '40', '--learning-rate', '1e-3');
        assert.equal(preferred.adapter, 'gado@1.1.0');
        assert.equal(preferred.held_out_accuracy, 1);
        const bad = at('bad.jsonl');
        fs.writeFileSync(bad, '{"prompt":"tono","completion":"gado"}\n{"prompt":"tono"}\n');
        const refused = await train('lora', '--data', bad, '--name', 'bad', '--base', model);
        assert.equal(refused.status, 2);
        assert.match(refused.stderr, /line 2: completion is missing/);
    } finally {
        await molly.remove();
    }
});

test('an adapter whose training was killed comes out the same', async () => {
    const training = (out) => ['train', 'lora', '--base', at('whole/model-q8_0.gguf'), '--data', write_rows('rows.jsonl'), '--name', 'killed', '--threads', '2',
        '--epochs', '20', '--patience', '0', '--checkpoint-minutes', '0', '--out', at(out)];
    const place = ['--data', at('registry')];
    const words = (out) => [...place, ...training(out)];
    run(...words('adapter-whole'));
    const killed = spawn(binary, words('adapter-parts'), { env: environment, stdio: 'ignore' });
    const exited = once(killed, 'exit');
    while (!fs.existsSync(at('adapter-parts/checkpoint.bin')) && killed.exitCode === null) await sleep(5);
    killed.kill('SIGKILL');
    await exited;
    run(...place, 'train', 'resume', at('adapter-parts'));
    assert.ok(fs.readFileSync(at('adapter-whole/adapter.gguf')).equals(fs.readFileSync(at('adapter-parts/adapter.gguf'))));
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
