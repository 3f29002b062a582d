// The `openai` client on the other faces: completions, embeddings, models; and the errors of all of them.
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import OpenAI from 'openai';
import { assert_contract, contract_missing } from './contract.mjs';
import { Molly, events_of } from './molly.mjs';

let molly;
let client;

before(async () => {
    molly = await Molly.start({ gateway: { body_bytes_max: 1 << 20 } });
    client = new OpenAI({ apiKey: molly.key, baseURL: `${molly.url}/v1`, maxRetries: 0 });
});
after(() => molly?.remove());

test('the contract is checked', { skip: contract_missing }, () => {
    assert.throws(() => assert_contract('CreateChatCompletionResponse', { id: 1 }));
});

describe('models', () => {
    test('lists and retrieves', async () => {
        const raw = await molly.fetch('/v1/models');
        assert_contract('ListModelsResponse', raw.json);
        const names = [];
        for await (const model of client.models.list())
            names.push(model.id);
        assert.ok(names.includes('auto') && names.includes('local'), names.join());
        assert_contract('Model', (await molly.fetch('/v1/models/local')).json);
        assert.equal((await client.models.retrieve('local')).id, 'local');
        await assert.rejects(client.models.retrieve('nobody'), { status: 404 });
    });

    test('the name of a known vendor means auto, and the headers say so', async () => {
        const { data, response } = await client.chat.completions
            .create({ model: 'gpt-4o', messages: [{ role: 'user', content: 'Hello' }], max_tokens: 4 }).withResponse();
        assert.equal(data.choices.length, 1);
        assert.equal(response.headers.get('x-molly-target'), 'local');
    });
});

describe('completions', () => {
    test('continues a prompt, whole and streamed', async () => {
        const request = { model: 'local', prompt: 'Il gatto', max_tokens: 12, temperature: 0 };
        const whole = await client.completions.create(request);
        assert_contract('CreateCompletionResponse', whole);
        assert.ok(whole.choices[0].text.length > 0);
        let text = '';
        for await (const chunk of await client.completions.create({ ...request, stream: true }))
            text += chunk.choices[0]?.text ?? '';
        assert.equal(text, whole.choices[0].text);
    });

    test('echoes, stops and counts', async () => {
        const request = { model: 'local', prompt: 'Il gatto', max_tokens: 12, temperature: 0 };
        const plain = (await client.completions.create(request)).choices[0].text;
        const echoed = await client.completions.create({ ...request, echo: true });
        assert.equal(echoed.choices[0].text, `Il gatto${plain}`);
        const stop = plain.slice(5, 9);
        const stopped = await client.completions.create({ ...request, stop });
        assert.equal(stopped.choices[0].text, plain.slice(0, plain.indexOf(stop)));
        assert.equal(stopped.choices[0].finish_reason, 'stop');
    });
});

describe('embeddings', () => {
    test('floats and base64 are the same unit vectors', async () => {
        const input = ['Il gatto dorme.', 'A train to Rome', 'Il gatto dorme.'];
        const floats = await client.embeddings.create({ model: 'local', input, encoding_format: 'float' });
        assert_contract('CreateEmbeddingResponse', floats);
        const decoded = await client.embeddings.create({ model: 'local', input });  // the client asks for base64
        assert.equal(floats.data.length, 3);
        assert.ok(floats.usage.prompt_tokens > 0);
        for (const [at, { embedding, index }] of floats.data.entries()) {
            assert.equal(index, at);
            assert.ok(Math.abs(Math.hypot(...embedding) - 1) < 1e-3);
            assert.equal(decoded.data[at].embedding.length, embedding.length);
            for (const [axis, value] of embedding.entries())
                assert.ok(Math.abs(value - decoded.data[at].embedding[axis]) < 1e-5);
        }
        assert.deepEqual(floats.data[0].embedding, floats.data[2].embedding);
        assert.notDeepEqual(floats.data[0].embedding, floats.data[1].embedding);
    });

    test('one string is one vector', async () => {
        assert.equal((await client.embeddings.create({ model: 'local', input: 'Ciao' })).data.length, 1);
    });
});

describe('errors', () => {
    const say = [{ role: 'user', content: 'Hello' }];
    const rejected = async (promise) => {
        try {
            await promise;
        } catch (error) {
            return error;
        }
        return assert.fail('it was accepted');
    };

    test('401 for a wrong key, of which no more than the end is quoted (case 25)', async () => {
        const wrong = `molly-${'Q7x'.repeat(13)}Z`;
        const stranger = new OpenAI({ apiKey: wrong, baseURL: `${molly.url}/v1`, maxRetries: 0 });
        const error = await rejected(stranger.chat.completions.create({ model: 'local', messages: say }));
        assert.ok(error instanceof OpenAI.AuthenticationError, String(error));
        assert_contract('ErrorResponse', { error: error.error });
        for (const key of [wrong, wrong.slice(0, -1), 'garbage', '']) {
            const raw = await molly.fetch('/v1/models', { key: '', headers: key ? { authorization: `Bearer ${key}` } : {} });
            assert.equal(raw.status, 401, raw.text);
            if (key)
                assert.ok(!raw.text.includes(key.slice(-5)), raw.text);
        }
        assert.ok(!molly.log.includes(wrong.slice(-5)));
    });

    test('404 for a model that nobody has', async () => {
        const error = await rejected(client.chat.completions.create({ model: 'nobody', messages: say }));
        assert.ok(error instanceof OpenAI.NotFoundError, String(error));
        assert.equal(error.code, 'model_not_found');
        assert_contract('ErrorResponse', { error: error.error });
    });

    test('400 for what makes no sense, naming the field', async () => {
        const bad = [
            [{ model: 'local' }, 'messages'],
            [{ model: 'local', messages: [] }, 'messages'],
            [{ model: 'local', messages: say, temperature: 'hot' }, 'temperature'],
            [{ model: 'local', messages: [{ role: 'wizard', content: 'x' }] }, 'messages[0].role'],
            [{ model: 'local', messages: say, n: 3 }, 'n'],
            [{ model: 'local', messages: say, max_tokens: -1 }, 'max_tokens'],
        ];
        for (const [body, param] of bad) {
            const error = await rejected(client.chat.completions.create(body));
            assert.ok(error instanceof OpenAI.BadRequestError, `${param}: ${error}`);
            assert.equal(error.param, param);
            assert_contract('ErrorResponse', { error: error.error });
        }
    });

    test('400 context_length_exceeded with both numbers, before any work (case 14)', async () => {
        const content = `The word is Zanzibar. ${'and so it goes on '.repeat(12000)} What is the word?`;
        const error = await rejected(client.chat.completions.create({ model: 'local', messages: [{ role: 'user', content }] }));
        assert.ok(error instanceof OpenAI.BadRequestError, String(error));
        assert.equal(error.code, 'context_length_exceeded');
        const numbers = error.message.replace(/[., ](?=\d{3}\b)/g, '').match(/\d+/g).map(Number).filter((number) => number > 1000);
        assert.ok(numbers.length >= 2, error.message);
    });

    test('413 for a body over the limit', async () => {
        const error = await rejected(client.chat.completions.create({ model: 'local', messages: [{ role: 'user', content: 'x'.repeat(2 << 20) }] }));
        assert.equal(error.status, 413, String(error));
        const raw = await molly.chat('y'.repeat(2 << 20));
        assert.equal(raw.status, 413);
        assert_contract('ErrorResponse', raw.json);
    });

    test('404 and 405 in the dialect of the path', async () => {
        const nowhere = await molly.fetch('/v1/nowhere');
        assert.equal(nowhere.status, 404);
        assert_contract('ErrorResponse', nowhere.json);
        const wrong_method = await molly.fetch('/v1/chat/completions', { method: 'DELETE' });
        assert.equal(wrong_method.status, 405);
        assert.ok(wrong_method.headers.get('allow').includes('POST'));
    });

    test('an error before the first piece of a stream is a plain error', async () => {
        const raw = await molly.chat('x', { model: 'nobody', stream: true });
        assert.equal(raw.status, 404);
        assert.equal(events_of(raw.text)[0]?.data ?? '', '');
    });
});
