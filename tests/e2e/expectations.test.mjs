// A predictor that was learned from a table of scores decides where nothing was judged yet, and yields to judgements.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { after, before, test } from 'node:test';

import { MockUpstream } from './mock_upstream.mjs';
import { Molly, target } from './molly.mjs';

const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'molly-expectations-'));
const file = path.join(folder, 'scores.predictor');
const cook = (dish) => `How do I cook ${dish} with garlic and butter for four people?`;
const sum = (a, b) => `What is ${a} plus ${b}, and what is their difference?`;
let kitchen;
let desk;
let molly;

before(async () => {
    [kitchen, desk] = await Promise.all(['kitchen', 'desk'].map((name) => MockUpstream.start({ name })));
    const dishes = ['rice', 'trout', 'lentils', 'veal', 'pasta', 'mushrooms', 'beans', 'chicken', 'squid', 'potatoes'];
    const rows = dishes.flatMap((dish, i) => [
        { prompt: cook(dish), scores: { kitchen: 1, desk: 0, elsewhere: 1 } },
        { prompt: sum(i * 7 + 12, i * 3 + 5), scores: { kitchen: 0, desk: 1, elsewhere: 1 } },
    ]);
    const table = path.join(folder, 'table.jsonl');
    fs.writeFileSync(table, rows.map((row) => JSON.stringify(row)).join('\n'));
    const targets = [target('kitchen', 'T1', kitchen.port), target('desk', 'T1', desk.port)];
    molly = await Molly.start({ engine: { enabled: false }, targets });
    const learned = await molly.run(['eval', 'router', table, '--folds', '2', '--repeats', '1', '--save', file]);
    assert.equal(learned.status, 0, learned.stderr);
    await molly.stop();
    await molly.launch({ engine: { enabled: false }, targets, extra: `[routing]\npredictor = ${JSON.stringify(file)}\n` });
});
after(async () => {
    await molly?.remove();
    await kitchen?.stop();
    await desk?.stop();
    fs.rmSync(folder, { recursive: true, force: true });
});

test('each question goes to whom its text lets expect the better answer', async () => {
    assert.equal((await molly.chat(cook('eggs'))).headers.get('x-molly-target'), 'kitchen');
    assert.equal((await molly.chat(sum(41, 17))).headers.get('x-molly-target'), 'desk');
});

test('judged answers outweigh what was expected', async () => {
    for (let i = 0; i < 60; ++i) {
        const answer = await molly.chat(cook('eggs'), { model: 'kitchen' });
        const judged = await molly.fetch('/molly/v1/feedback', { body: { receipt: answer.headers.get('x-molly-receipt'), score: 0 } });
        assert.ok(judged.status < 300, judged.text);
    }
    assert.equal((await molly.chat(cook('eggs'))).headers.get('x-molly-target'), 'desk');
});

test('a file that is none stops the start with a cure', async () => {
    fs.writeFileSync(file, 'nothing learned');
    const asked = await molly.run(['router', 'explain', 'x', '--config', path.join(molly.folder, 'molly.toml'), '--data', path.join(folder, 'data')]);
    assert.notEqual(asked.status, 0);
    assert.match(asked.stderr, /molly eval router/);
});
