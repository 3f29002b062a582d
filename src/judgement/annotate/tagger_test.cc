#include "annotate/internal/tagger.h"

#include <string>

#include <gtest/gtest.h>

#include "annotate/detector.h"
#include "annotate/internal/words.h"

namespace molly::annotate {
namespace {

const Detector& detector() {
    static const auto made = Detector::make({});
    return **made;
}

/// Each finding of `text` as `kind:span`.
std::vector<std::string> seen(std::string_view text) {
    std::vector<std::string> out;
    for (const Finding& finding : detector().find(text)) {
        out.push_back(std::string(to_string(finding.kind)) + ':' +
                      std::string(text.substr(finding.begin, finding.end - finding.begin)));
    }
    return out;
}

using Seen = std::vector<std::string>;

TEST(Names, ArePersonsPlacesAndOrganisationsInBothLanguages) {
    EXPECT_EQ(seen("My name is Mario Rossi and I live in Milan."),
              (Seen{"person:Mario Rossi", "location:Milan"}));
    EXPECT_EQ(seen("Gentile Sig. Bianchi, la aspettiamo a Torino."),
              (Seen{"person:Bianchi", "location:Torino"}));
    EXPECT_EQ(seen("Lavoro per Edil Rossi S.r.l. dal 2010."),
              (Seen{"organisation:Edil Rossi S.r.l."}));
    EXPECT_EQ(seen("Abito in via Garibaldi 12, 20121 Milano (MI)."),
              (Seen{"address:via Garibaldi 12, 20121 Milano (MI)"}));
    EXPECT_EQ(seen("mi chiamo giulia ferrari"), (Seen{"person:giulia ferrari"}));
}

// Case 27: bytes 15 to 25; the decomposed form is one byte longer.
TEST(Names, HaveByteSpansBehindAnyCharacter) {
    EXPECT_EQ(detector().find("Ciao 😀 sono Zoè Rossi"),
              (std::vector<Finding>{{FindingKind::person, Checksum::none, 15, 25}}));
    EXPECT_EQ(detector().find("Ciao 😀 sono Zoe\u0300 Rossi"),
              (std::vector<Finding>{{FindingKind::person, Checksum::none, 15, 26}}));
    EXPECT_EQ(seen("👨‍👩‍👧 sono Maria Bianchi"), (Seen{"person:Maria Bianchi"}));
    EXPECT_EQ(seen("שלום, my name is Anna Verdi"), (Seen{"person:Anna Verdi"}));
}

TEST(Names, NeitherOverlapIdentifiersNorReplaceThem) {
    EXPECT_EQ(seen("Scrivere a Mario Rossi, mario.rossi@example.com, IBAN DE89370400440532013000"),
              (Seen{"person:Mario Rossi", "email:mario.rossi@example.com",
                    "iban:DE89370400440532013000"}));
}

TEST(Names, AreNotInPlainInstructions) {
    for (const std::string text :
         {"Write a Python function that sorts a list.", "Che cos'è il metodo Monte Carlo?",
          "Open the File menu and choose Save As.", "Spiega la differenza tra TCP e UDP.",
          R"({"type": "object", "properties": {"name": {"type": "string"}}})", "", "...", "\n\n"}) {
        EXPECT_EQ(seen(text), Seen{}) << text;
    }
}

TEST(Names, CanBeLeftOut) {
    const auto plain = Detector::make({.names = false, .model = {}});
    ASSERT_TRUE(plain);
    EXPECT_TRUE((*plain)->find("My name is Mario Rossi.").empty());
    EXPECT_EQ((*plain)->loaded(), (std::vector<std::string>{"identifiers", "secrets"}));
    EXPECT_EQ(detector().loaded().back(), "names");
}

TEST(Tagger, RefusesAModelThatIsNotWhole) {
    const std::string whole(built_in_tagger());
    EXPECT_TRUE(Tagger::make(whole));
    for (const std::string& bytes :
         {std::string(), std::string("mollytag"), whole.substr(0, whole.size() - 1), whole + "x",
          "x" + whole.substr(1)}) {
        const auto made = Tagger::make(bytes);
        ASSERT_FALSE(made);
        EXPECT_EQ(made.error().code(), ErrorCode::corrupt);
    }
}

TEST(Words, AreSplitWithTheirShapes) {
    std::vector<Word> words;
    const std::string text = "Zoè d'Angelo, 20121\n\n\nMI: Ü x1 12345678 例";
    split_words(text, {}, words);
    std::vector<std::string> pieces;
    for (const Word& word : words)
        pieces.push_back(text.substr(word.begin, word.end - word.begin));
    EXPECT_EQ(pieces, (Seen{"Zoè", "d", "'", "Angelo", ",", "20121", "\n\n\n", "MI", ":", "Ü", "x1",
                            "12345678", "例"}));
    const auto shape = [&](std::size_t i) { return words[i].shape; };
    EXPECT_EQ(shape(0), Shape::capitalised);
    EXPECT_EQ(shape(1), Shape::lower);
    EXPECT_EQ(shape(2), Shape{'\''});
    EXPECT_EQ(shape(5), Shape::digits_5);
    EXPECT_EQ(shape(6), Shape::line);
    EXPECT_EQ(shape(7), Shape::upper);
    EXPECT_EQ(shape(9), Shape::initial);
    EXPECT_EQ(shape(10), Shape::alnum);
    EXPECT_EQ(shape(11), Shape::digits_many);
    EXPECT_EQ(shape(12), Shape::uncased);
    EXPECT_EQ(word_hash("ZOÈ"), words[0].hash);
}

}  // namespace
}  // namespace molly::annotate
