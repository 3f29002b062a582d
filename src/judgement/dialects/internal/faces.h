#pragma once
// One decoder and one encoder a face; dialects.cc chooses among them. Pure.
#include <memory>
#include <string>

#include "dialects/dialects.h"
#include "dialects/internal/fields.h"

namespace molly::dialects {

void decode_openai_chat(const Fields& fields, Decoded& decoded);
std::string encode_openai_chat(const Envelope& envelope, const domain::Response& response);
std::unique_ptr<StreamEncoder> make_openai_chat_stream(Envelope envelope);

void decode_openai_completion(const Fields& fields, Decoded& decoded);
std::string encode_openai_completion(const Envelope& envelope, const domain::Response& response);
std::unique_ptr<StreamEncoder> make_openai_completion_stream(Envelope envelope);

void decode_openai_embedding(const Fields& fields, Decoded& decoded);
std::string encode_openai_embedding(const Envelope& envelope, const domain::Response& response);

void decode_openai_response(const Fields& fields, Decoded& decoded);
std::string encode_openai_response(const Envelope& envelope, const domain::Response& response);
std::unique_ptr<StreamEncoder> make_openai_response_stream(Envelope envelope);

void decode_anthropic(const Fields& fields, Decoded& decoded);
std::string encode_anthropic(const Envelope& envelope, const domain::Response& response);
std::unique_ptr<StreamEncoder> make_anthropic_stream(Envelope envelope);

void decode_ollama_chat(const Fields& fields, Decoded& decoded);
void decode_ollama_generate(const Fields& fields, Decoded& decoded);
void decode_ollama_embed(const Fields& fields, Decoded& decoded);
std::string encode_ollama(Face face, const Envelope& envelope, const domain::Response& response);
std::string encode_ollama_embed(const Envelope& envelope, const domain::Response& response);
std::unique_ptr<StreamEncoder> make_ollama_stream(Face face, Envelope envelope);

}  // namespace molly::dialects
