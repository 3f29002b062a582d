// A whole agent from its package: `qwen` of `@qwen-code/qwen-code`, one question, no terminal.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import fs from 'node:fs';
import path from 'node:path';
import { after, before, test } from 'node:test';
import { MockUpstream } from './mock_upstream.mjs';
import { Molly, target } from './molly.mjs';

let molly;
let studio;

before(async () => {
    studio = await MockUpstream.start({ name: 'studio' });
    molly = await Molly.start({ targets: [target('studio', 'T1', studio.port, { quality: 0.1, context_tokens_max: 131072 })] });
});
after(async () => {
    await molly?.remove();
    await studio?.stop();
});

async function ask(model, question, folder) {
    const script = path.join(import.meta.dirname, 'node_modules/@qwen-code/qwen-code/cli.js');
    const words = [script, '-y', '--auth-type', 'openai', '--openai-api-key', molly.key, '--openai-base-url', `${molly.url}/v1`, '--model', model, '-p', question];
    const agent = spawn(process.execPath, words, {
        cwd: folder, stdio: ['ignore', 'pipe', 'pipe'], env: { PATH: process.env.PATH, HOME: folder, NO_COLOR: '1' },
    });
    let said = '';
    agent.stdout.on('data', (piece) => { said += piece; });
    agent.stderr.on('data', (piece) => { said += piece; });
    const timer = setTimeout(() => agent.kill('SIGKILL'), 180_000);
    const [status] = await once(agent, 'exit');
    clearTimeout(timer);
    assert.equal(status, 0, said);
    return said;
}

test('uses a tool and answers, through T1', async () => {
    const folder = fs.mkdtempSync(path.join(molly.folder, 'agent-'));
    fs.writeFileSync(path.join(folder, 'zanzibar.txt'), '');
    studio.next({ tool_calls: [{ name: 'list_directory', arguments: { path: folder } }] });
    assert.match(await ask('studio', 'What is here?', folder), /Hello from studio/);
    const [first, second] = studio.calls;
    assert.equal(first.json.stream, true);
    assert.ok(first.json.tools.length > 3, 'its tools are declared');
    assert.ok(first.body.includes('What is here?'));
    assert.equal(second.json.messages.at(-1).role, 'tool');
    assert.match(second.body, /zanzibar/, 'the result of the tool comes back');
});
