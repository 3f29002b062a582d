// Proof and rules from the command line: receipts, keys, witnesses, what the rules say, and rules that change.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { after, before, describe, test } from 'node:test';
import { Molly } from './molly.mjs';

const rules = (text) => `
[audit]
witness_file = "WITNESS"
witness_every_s = 0
[[target]]
name = "office"
tier = "T1"
url = "http://192.168.77.20:8080/v1"
[[target]]
name = "cloud"
tier = "T3"
url = "https://api.example.com/v1"
${text}`;
const hr = '[[policy.rule]]\nname = "hr"\ntags = ["hr"]\ntiers = ["T0"]\n';

let molly;
let witness;

/** Writes the configuration anew, with other rules. */
function rewrite(text) {
    const file = path.join(molly.folder, 'molly.toml');
    const before = fs.readFileSync(file, 'utf8');
    fs.writeFileSync(file, before.slice(0, before.indexOf('[audit]')) + rules(text).trimStart().replace('WITNESS', witness));
}
async function told(...words) {
    const ran = await molly.command(...words, '--json');
    assert.equal(ran.status, 0, `molly ${words.join(' ')}: ${ran.stdout}${ran.stderr}`);
    return JSON.parse(ran.stdout);
}
async function chat(molly_options, content = 'ciao') {
    const reply = await molly.fetch('/v1/chat/completions', {
        body: { model: 'local', max_tokens: 4, messages: [{ role: 'user', content }], molly: molly_options },
    });
    return { ...reply, id: reply.headers.get('x-molly-receipt') };
}

before(async () => {
    molly = await Molly.start();
    witness = path.join(molly.folder, 'witness.jsonl');
    await molly.stop();
    await molly.launch({ extra: rules(hr).replace('WITNESS', witness) });
});
after(() => molly?.remove());

describe('the rules', () => {
    test('are checked, with remarks on what cannot be meant', async () => {
        const checked = await told('policy', 'check');
        assert.match(checked.rules_hash, /^[0-9a-f]{16}$/);
        assert.deepEqual(checked.remarks, []);
        const file = path.join(molly.folder, 'odd.toml');
        fs.writeFileSync(file, '[[policy.rule]]\nname = "odd"\nat_least = "private"\nat_most = "public"\ntiers = ["T0"]\n');
        const odd = await molly.run(['policy', 'check', file, '--lang', 'it']);
        assert.equal(odd.status, 0);
        assert.match(odd.stdout, /policy\.rule\[0\] \(odd\): attenzione: non si applica mai/);
        fs.writeFileSync(file, '[[policy.rule]]\nname = "bad"\ntiers = ["T9"]\n');
        const bad = await molly.run(['policy', 'check', file]);
        assert.equal(bad.status, 2);
        assert.match(bad.stderr, /policy\.rule\[0\]\.tiers/);
    });

    test('are explained for one request', async () => {
        const file = path.join(molly.folder, 'request.json');
        fs.writeFileSync(file, JSON.stringify({ model: 'auto', messages: [{ role: 'user', content: 'x' }], molly: { tags: ['hr'] } }));
        const explained = await told('policy', 'explain', file);
        assert.equal(explained.rule, 'hr');
        const office = explained.targets.find((target) => target.target === 'office');
        assert.equal(office.permitted, false);
        assert.deepEqual(office.would_open_if, ['policy rule hr did not apply']);
        const plain = await molly.command('policy', 'explain', file, '--lang', 'it');
        assert.match(plain.stdout, /aperta se la regola hr non valesse/);
    });

    test('pass the scenarios of their owner, or not', async () => {
        const file = path.join(molly.folder, 'own.scenario');
        const text = 'scenario: Personnel files stay here\nkey anna:\nask anna\n  tag: hr\n  user: Le ferie\nexpect\n  rule: hr\n  permitted: T0\n';
        fs.writeFileSync(file, text);
        const good = await told('policy', 'test', file);
        assert.deepEqual([good.as_written, good.checked], [true, 2]);
        fs.writeFileSync(file, text.replace('permitted: T0', 'permitted: T0 T1'));
        const bad = await molly.command('policy', 'test', file);
        assert.equal(bad.status, 1);
        assert.match(bad.stdout, /line 8: `permitted: T0 T1`, but it is: T0/);
        fs.writeFileSync(file, 'scenario: x\ncolour: red\n');
        assert.match((await molly.command('policy', 'test', file)).stderr, /own\.scenario: line 2/);
    });

    test('leave the exits that some request may use', async () => {
        const exits = await told('policy', 'firewall', '--user', '1234');
        assert.deepEqual(exits.exits.map((exit) => exit.name), ['office']);
        assert.match(exits.nftables, /ip daddr 192\.168\.77\.20 tcp dport 8080 accept/);
    });

    test('are read again as a whole, or not at all', async () => {
        const first = await chat({});
        const before_hash = (await molly.trace(first.id)).rules_hash;
        rewrite('[[labels.rule]]\nname = "falcon"\nphrases = ["falco"]\nclass = "secret"\n');
        const loaded = await told('policy', 'reload');
        assert.notEqual(loaded.rules_hash, before_hash);
        const second = await chat({}, 'Progetto Falco');
        const trace = await molly.trace(second.id);
        assert.equal(trace.rules_hash, loaded.rules_hash);
        assert.equal(trace.label.class, 'secret');
        rewrite('[[labels.rule]]\nname = "falcon"\nphrases = ["falco"]\nclass = "public"\n[[policy.rule]]\nname = "x"\ntiers = ["T7"]\n');
        assert.equal((await molly.command('policy', 'reload')).status, 2);
        assert.equal((await molly.trace((await chat({}, 'Progetto Falco')).id)).label.class, 'secret');
        rewrite(hr);
        process.kill(molly.pid, 'SIGHUP');
        for (let i = 0; i < 100 && (await molly.trace((await chat({})).id)).rules_hash !== before_hash; ++i)
            await sleep(100);
        assert.equal((await molly.trace((await chat({})).id)).rules_hash, before_hash);
    });

    test('are read again for an admin only', async () => {
        const made = await told('keys', 'create', '--member', 'anna');
        assert.equal((await molly.fetch('/molly/v1/policy/reload', { method: 'POST', key: made.key })).status, 403);
        assert.equal((await molly.fetch('/molly/v1/audit/rotate-key', { method: 'POST', key: made.key })).status, 403);
    });
});

describe('labelled text', () => {
    test('brings its label back under another key', async () => {
        const passage = 'La controparte svizzera firma il tre marzo; lo stabilimento di Ivrea chiude in aprile e il consiglio lo dice dopo Pasqua.';
        await chat({ class: 'secret' }, passage);
        const made = await told('keys', 'create', '--member', 'bruno');
        const reply = await molly.fetch('/v1/chat/completions', {
            key: made.key, body: { model: 'local', max_tokens: 4, messages: [{ role: 'user', content: `Traduci: ${passage.toUpperCase()}` }] },
        });
        assert.equal(reply.status, 200, reply.text);
        const list = (await told('traces', 'list', '--limit', '1')).traces;
        assert.equal(list[0].label.class, 'secret');
        assert.ok(list[0].signals.some((signal) => signal.source === 'fingerprint'));
    });
});

describe('the proof', () => {
    test('goes on under another key, and a witness shows a cut', async () => {
        const changed = await told('audit', 'rotate-key');
        assert.notEqual(changed.key_id, changed.retired);
        await chat({});
        await molly.stop();
        const report = await told('audit', 'verify');
        assert.deepEqual(report.keys, [changed.retired, changed.key_id]);
        assert.ok(report.witnessed > 0);
        const head = await molly.command('audit', 'head');
        const code = head.stdout.trim();
        assert.match(code, /^([0-9A-HJKMNP-TV-Z]{5}-){7}[0-9A-HJKMNP-TV-Z]{5}$/);
        const noted = path.join(molly.folder, 'noted.jsonl');
        await told('audit', 'head', '--write', noted);
        const log = path.join(molly.folder, 'log.jsonl');
        await told('audit', 'export', log);
        assert.equal((await molly.command('audit', 'verify', log, '--head', code)).status, 0);
        // Everything after the first signature goes, cleanly.
        const lines = fs.readFileSync(log, 'utf8').split('\n');
        const first = lines.findIndex((line) => line.startsWith('{"head":'));
        fs.writeFileSync(log, lines.slice(0, first + 1).join('\n') + '\n');
        assert.equal((await molly.command('audit', 'verify', log)).status, 0);
        for (const seen of [code, noted, witness]) {
            const cut = await molly.command('audit', 'verify', log, '--head', seen, '--json');
            assert.equal(cut.status, 6, seen);
            assert.equal(JSON.parse(cut.stdout).damage, 'truncated');
        }
        await molly.launch();
    });
});
