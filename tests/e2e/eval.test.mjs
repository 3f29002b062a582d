// Grading a base on small tasks with the real binary: the table for a person, the JSON for a script, faults with a cure.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { after, before, test } from 'node:test';

const build = process.env.MOLLY_BUILD ?? path.resolve(import.meta.dirname, '../../build/release');
const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'molly-eval-'));
const at = (...names) => path.join(folder, ...names);
const environment = { ...process.env, LANG: 'C.UTF-8', HOME: folder };
const run = (...words) =>
    execFileSync(path.join(build, 'molly'), words, { env: environment, encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'] });
const base = path.join(build, 'models/molly-test.gguf');

const row = ([asked, answer]) => JSON.stringify({
    messages: [{ role: 'system', content: 'Which colour?' }, { role: 'user', content: asked },
        { role: 'assistant', content: JSON.stringify(answer) }], class: 'public' });

before(() => {
    fs.mkdirSync(at('tasks/colours'), { recursive: true });
    fs.writeFileSync(at('tasks/colours/task.json'), JSON.stringify({ name: 'colours', schema: { type: 'string', enum: ['red', 'green'] } }));
    fs.writeFileSync(at('tasks/colours/train.jsonl'), [['rose', 'red'], ['tree', 'green']].map(row).join('\n'));
    fs.writeFileSync(at('tasks/colours/held_out.jsonl'), [['fire', 'red'], ['leaf', 'green'], ['ruby', 'red']].map(row).join('\n'));
});
after(() => fs.rmSync(folder, { recursive: true, force: true }));

test('a base is graded bare and with examples', () => {
    const report = JSON.parse(run('eval', 'adapters', '--base', base, '--tasks', at('tasks'), '--json', '--out', at('report.json')));
    assert.deepEqual(JSON.parse(fs.readFileSync(at('report.json'), 'utf8')), report);
    const [task] = report.tasks;
    assert.equal(task.task, 'colours');
    assert.equal(task.rows, 3);
    assert.equal(task.shots.shots, 2);
    // The schema leaves two answers, so that chance alone grades some of them right or wrong, never broken.
    assert.ok(task.base.exact.low <= task.base.exact.mean && task.base.exact.mean <= task.base.exact.high);
    assert.equal(report.gain_mean, undefined);
    assert.match(run('eval', 'adapters', '--base', base, '--tasks', at('tasks')), /colours +3 /);
});

test('what cannot be graded is refused with a cure', () => {
    const refused = (...words) => {
        try {
            run('eval', 'adapters', ...words);
        } catch (error) {
            return error;
        }
        return assert.fail('it went through');
    };
    const missing = refused('--base', base, '--tasks', at('nowhere'));
    assert.equal(missing.status, 4);
    assert.match(missing.stderr, /tools\/specialists\/make\.py/);
    assert.equal(refused('--base', 'no-such-model', '--tasks', at('tasks')).status, 4);
});
