// `@openai/agents`: a run with a tool, on both OpenAI faces.
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { Agent, OpenAIProvider, Runner, setTracingDisabled, tool } from '@openai/agents';
import { z } from 'zod';
import { MockUpstream } from './mock_upstream.mjs';
import { Molly, target } from './molly.mjs';

let molly;
let studio;

before(async () => {
    setTracingDisabled(true);
    studio = await MockUpstream.start({ name: 'studio' });
    molly = await Molly.start({ targets: [target('studio', 'T1', studio.port, { quality: 0.1 })] });
});
after(async () => {
    await molly?.remove();
    await studio?.stop();
});

const asked = [];
const weather = tool({
    name: 'get_weather', description: 'Weather in a city', parameters: z.object({ city: z.string() }),
    execute: async ({ city }) => {
        asked.push(city);
        return `Sunny in ${city}`;
    },
});

for (const [face, useResponses] of [['responses', true], ['chat completions', false]])
    describe(`on ${face}`, () => {
        let runner;
        before(() => {
            const modelProvider = new OpenAIProvider({ apiKey: molly.key, baseURL: `${molly.url}/v1`, useResponses });
            runner = new Runner({ modelProvider, tracingDisabled: true });
        });

        test('the engine answers', async () => {
            const agent = new Agent({ name: 'plain', instructions: 'Be brief.', model: 'local', modelSettings: { temperature: 0, maxTokens: 400 } });
            const result = await runner.run(agent, 'Ciao, how are you today?');
            assert.ok(result.finalOutput.length > 0);
            assert.ok(result.rawResponses[0].usage.outputTokens > 0);
        });

        for (const stream of [false, true])
            test(`a tool is called and its result used (stream ${stream})`, async () => {
                studio.reset();
                asked.length = 0;
                studio.next({ tool_calls: [{ name: 'get_weather', arguments: { city: 'Roma' } }] });
                const agent = new Agent({ name: 'tools', instructions: 'Use tools.', model: 'studio', tools: [weather] });
                const result = await runner.run(agent, 'Weather in Roma?', { stream });
                if (stream) {
                    const types = new Set();
                    for await (const event of result)
                        types.add(event.type);
                    await result.completed;
                    assert.ok(types.has('raw_model_stream_event') && types.has('run_item_stream_event'));
                }
                assert.deepEqual(asked, ['Roma']);
                assert.equal(result.finalOutput, 'Hello from studio');
                assert.ok(studio.calls[1].body.includes('Sunny in Roma'));
                assert.equal(studio.calls[0].json.messages[0].role, 'system');
            });

        test('a typed answer is of its type', async () => {
            const outputType = z.object({ ok: z.boolean(), city: z.enum(['Roma', 'Milano']) });
            const agent = new Agent({ name: 'typed', instructions: 'Answer.', model: 'local', outputType, modelSettings: { maxTokens: 100 } });
            const result = await runner.run(agent, 'Is it so?');
            assert.equal(typeof result.finalOutput.ok, 'boolean');
        });
    });
