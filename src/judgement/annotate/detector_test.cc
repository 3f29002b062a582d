#include "annotate/detector.h"

#include <algorithm>
#include <random>
#include <string>

#include <gtest/gtest.h>

#include "base/utf8.h"

namespace molly::annotate {
namespace {

using domain::Checksum;
using domain::Finding;
using domain::FindingKind;

const Detector& detector() {
    static const auto made = Detector::make({});
    return **made;
}

/// Identifiers and secrets alone: what the model takes for names is another matter.
std::vector<Finding> find(std::string_view text) {
    return detector().find_structured(text);
}

/// Each finding of `text` as `kind:span`, with `!` where the check digits are wrong.
std::vector<std::string> seen(std::string_view text) {
    std::vector<std::string> out;
    for (const Finding& finding : find(text)) {
        std::string line(to_string(finding.kind));
        if (finding.checksum == Checksum::invalid) line += '!';
        line += ':';
        line += text.substr(finding.begin, finding.end - finding.begin);
        out.push_back(line);
    }
    return out;
}

using Seen = std::vector<std::string>;

struct Row {
    std::string text;
    Seen expected;
};

void expect_rows(std::initializer_list<Row> rows) {
    for (const Row& row : rows)
        EXPECT_EQ(seen(row.text), row.expected) << row.text;
}

// Case 31.
TEST(Detector, FindsIbansHoweverTheyAreGrouped) {
    expect_rows({
        {"IT60 X054 2811 1010 0000 0123 456", {"iban:IT60 X054 2811 1010 0000 0123 456"}},
        {"it60 x054 2811 1010 0000 0123 456", {"iban:it60 x054 2811 1010 0000 0123 456"}},
        {"IT60\u00a0X054\u00a02811\u00a01010\u00a00000\u00a00123\u00a0456",
         {"iban:IT60\u00a0X054\u00a02811\u00a01010\u00a00000\u00a00123\u00a0456"}},
        {"IT60-X054-2811-1010-0000-0123-456", {"iban:IT60-X054-2811-1010-0000-0123-456"}},
        {"IT60 X054 2811 1010 0000 0123 456 failed", {"iban:IT60 X054 2811 1010 0000 0123 456"}},
        {"IT24D0542811101000000654321", {"iban:IT24D0542811101000000654321"}},
        {"DE89370400440532013000", {"iban:DE89370400440532013000"}},
        {"IBAN: GB82 WEST 1234 5698 7654 32, grazie", {"iban:GB82 WEST 1234 5698 7654 32"}},
    });
    EXPECT_EQ(find("IT60X0542811101000000123456").at(0).checksum, Checksum::valid);
}

TEST(Detector, ReportsAnIbanWithWrongDigitsAsSuch) {
    expect_rows({
        {"IT60X0542811101000000123457", {"iban!:IT60X0542811101000000123457"}},
        {"IT07X0542811101000000654321", {"iban!:IT07X0542811101000000654321"}},
        {"DE88370400440532013000", {"iban!:DE88370400440532013000"}},
    });
}

TEST(Detector, HoldsTheLengthOfTheCountrysIban) {
    expect_rows({
        {"DE8937040044053201300", {}},
        {"DE893704004405320130001", {}},
        {"ZZ60X0542811101000000123456", {}},
        {"is 12 of them", {}},
    });
}

// Case 32.
TEST(Detector, FindsCodiciFiscaliWithOmocodia) {
    for (const std::string code : {"RSSMRA80A01F205X", "RSSMRA80A01F20RS", "RSSMRA80A01F2L5I",
                                   "RSSMRAULALMFNLRD", "rssmra80a01f205x"}) {
        const auto findings = find("cf " + code + ".");
        ASSERT_EQ(findings.size(), 1U) << code;
        EXPECT_EQ(findings[0], (Finding{FindingKind::codice_fiscale, Checksum::valid, 3, 19}));
    }
    expect_rows({
        {"RSSMRA80A01F205D", {"codice_fiscale!:RSSMRA80A01F205D"}},
        {"RSSMRA80\nA01F205X", {"codice_fiscale:RSSMRA80\nA01F205X"}},
        {"RSSMRA80A01\r\n    F205X", {"codice_fiscale:RSSMRA80A01\r\n    F205X"}},
        {"RSS MRA 80A01 F205X", {"codice_fiscale:RSS MRA 80A01 F205X"}},
        {"HSNLIX85C55Z330O", {"codice_fiscale!:HSNLIX85C55Z330O"}},
        {"codice fiscale 01333550323", {"partita_iva:01333550323"}},
        {"RSSMRA80A01F205XX", {}},
        {"RSSMRA80Z01F205X", {}},
    });
}

TEST(Detector, FindsAForeignersCodiceFiscale) {
    expect_rows({{"il CF è BNGLXA92T60Z129A", {"codice_fiscale:BNGLXA92T60Z129A"}},
                 {"il CF è dckfrd70m45z404s", {"codice_fiscale:dckfrd70m45z404s"}}});
}

// Cards of each brand as their issuers publish them for tests.
TEST(Detector, FindsCardsByBrandAndCheckDigit) {
    expect_rows({
        {"4111 1111 1111 1111", {"card:4111 1111 1111 1111"}},
        {"5500-0000-0000-0004 scade", {"card:5500-0000-0000-0004"}},
        {"amex 3782 822463 10005", {"card:3782 822463 10005"}},
        {"6011111111111117,", {"card:6011111111111117"}},
        {"carta n. 4111 1111 1111 1112", {"card!:4111 1111 1111 1112"}},
        {"4111 1111 1111 1112", {}},
        {"9111 1111 1111 1111", {}},
        {"41111111111111111111", {}},
    });
}

TEST(Detector, FindsAPartitaIvaWhereAWordSaysSo) {
    expect_rows({
        {"P.IVA 01333550323", {"partita_iva:01333550323"}},
        {"Partita IVA: 12345678901", {"partita_iva!:12345678901"}},
        {"VAT IT01333550323", {"partita_iva:IT01333550323"}},
        {"01333550323", {}},
        {"ordine 12345678901", {}},
        {"P.IVA 00000000000", {}},
    });
}

TEST(Detector, FindsItalianDocuments) {
    expect_rows({
        {"targa ab 123 cd", {"plate:ab 123 cd"}},
        {"La FIAT AB123CD blu", {"plate:AB123CD"}},
        {"AI123CD", {}},
        {"CIE CA12345BB rilasciata", {"id_card:CA12345BB"}},
        {"carta d'identità AY1234567", {"id_card:AY1234567"}},
        {"carta di identità n. AY 1234567", {"id_card:AY 1234567"}},
        {"passaporto YA1234567", {"passport:YA1234567"}},
        {"codice AY1234567", {}},
        {"patente MI1234567X", {"driving_licence:MI1234567X"}},
        {"U1H00B000C", {"driving_licence:U1H00B000C"}},
        {"U1H00A000B", {}},
        {"tessera 80380 00012 34567 89018", {"health_card:80380 00012 34567 89018"}},
        {"80380000123456789018", {"health_card:80380000123456789018"}},
    });
}

// Case 28 names this one; the stream is the redactor's part.
TEST(Detector, FindsSocialSecurityNumbers) {
    expect_rows({
        {"SSN 123-45-6789 ok", {"ssn:123-45-6789"}},
        {"social security: 123 45 6789", {"ssn:123 45 6789"}},
        {"ssn 123456789", {"ssn:123456789"}},
        {"000-45-6789", {}},
        {"123-45-67890", {}},
        {"123456789", {}},
    });
}

TEST(Detector, FindsPhonesOfManyCountries) {
    expect_rows({
        {"+39 333 1234567", {"phone:+39 333 1234567"}},
        {"+393331234567", {"phone:+393331234567"}},
        {"0039 02 1234 5678", {"phone:0039 02 1234 5678"}},
        {"chiamami al 333.123.45.67!", {"phone:333.123.45.67"}},
        {"cell. 3331234567", {"phone:3331234567"}},
        {"06/12345678", {"phone:06/12345678"}},
        {"tel 011 12 34 567", {"phone:011 12 34 567"}},
        {"(555) 123-4567 x12", {"phone:(555) 123-4567 x12"}},
        {"+1-448-414-3381x060", {"phone:+1-448-414-3381x060"}},
        {"212.555.0199", {"phone:212.555.0199"}},
        {"+44 (0)20 7946 0958", {"phone:+44 (0)20 7946 0958"}},
        {"+33\u00a06\u00a012\u00a034\u00a056\u00a078",
         {"phone:+33\u00a06\u00a012\u00a034\u00a056\u00a078"}},
        {"call me at 9747 6578", {"phone:9747 6578"}},
    });
}

TEST(Detector, TakesOtherNumbersForNoPhones) {
    expect_rows({
        {"3.141592653589", {}},
        {"2024-03-12 10:30", {}},
        {"12/03/2024", {}},
        {"1.234.567,89 euro", {}},
        {"pagine 100 200 3000", {}},
        {"ISBN 978-88-04-12345", {}},
        {"01 02 03 04", {}},
        {"ordine 20240312", {}},
    });
}

TEST(Detector, FindsEmailAddressesOfAnyScript) {
    expect_rows({
        {"scrivi a mario.rossi@example.com.", {"email:mario.rossi@example.com"}},
        {"<anna+spam@mail.example.co.uk>", {"email:anna+spam@mail.example.co.uk"}},
        {"'zoè@società.it'", {"email:zoè@società.it"}},
        {"用户@例子.公司", {"email:用户@例子.公司"}},
        {"mailto:a@b.io?subject=x", {"email:a@b.io"}},
        {"@mention and a@b", {}},
        {"x@1.2", {}},
    });
}

TEST(Detector, FindsAddressesOfTheNetwork) {
    expect_rows({
        {"da 203.0.113.7 a", {"ip_address:203.0.113.7"}},
        {"127.0.0.1 o 0.0.0.0", {}},
        {"versione 1.2.3.4", {}},
        {"1.2.3.4.5", {}},
        {"300.1.1.1", {}},
        {"2001:db8::8a2e:370:7334,", {"ip_address:2001:db8::8a2e:370:7334"}},
        {"d80:e4b5:79da:6cf6:71f3:51f7:9161:c319",
         {"ip_address:d80:e4b5:79da:6cf6:71f3:51f7:9161:c319"}},
        {"fe80::1 fe80::", {"ip_address:fe80::1"}},
        {"std::vector a::b 12:30:45", {}},
        {"00:1A:2b:3C:4d:5E", {"mac_address:00:1A:2b:3C:4d:5E"}},
        {"00-1A-2B-3C-4D-5E", {"mac_address:00-1A-2B-3C-4D-5E"}},
        {"001a.2b3c.4d5e", {"mac_address:001a.2b3c.4d5e"}},
    });
}

TEST(Detector, FindsCredentialsInsideUrls) {
    expect_rows({
        {"https://anna:s3gr3t@host.example/x", {"url_credentials:anna:s3gr3t"}},
        {"postgres://u:p@ss@db:5432/x", {"url_credentials:u:p@ss"}},
        {"https://host.example:8080/a@b", {}},
        {"https://anna@host.example/", {"email:anna@host.example"}},
    });
}

TEST(Detector, FindsDatesOfBirthOnlyWhereAWordSaysSo) {
    expect_rows({
        {"nato a Roma il 12/03/1980", {"birth_date:12/03/1980"}},
        {"Data di nascita: 1° gennaio 1970", {"birth_date:1° gennaio 1970"}},
        {"She was born on March 12th, 1980 in", {"birth_date:March 12th, 1980"}},
        {"DOB 1980-03-12", {"birth_date:1980-03-12"}},
        {"2/25/1953 (date of birth)", {"birth_date:2/25/1953"}},
        {"scade il 12/03/1980", {}},
    });
}

std::string key_of(std::string_view prefix, std::size_t length) {
    constexpr std::string_view letters = "a7Kq2Zm9Xw4Tb6Vn1Rc8Yd3Fe5Gh0Jp";
    std::string key(prefix);
    for (std::size_t i = 0; i < length; ++i)
        key += letters[(i * 7 + i / 5) % letters.size()];
    return key;
}

TEST(Detector, FindsKeysOfProviders) {
    for (const auto& [prefix, length] :
         std::initializer_list<std::pair<std::string_view, int>>{{"ghp_", 36},
                                                                 {"github_pat_", 82},
                                                                 {"glpat-", 20},
                                                                 {"xoxb-", 40},
                                                                 {"sk_live_", 24},
                                                                 {"sk-", 48},
                                                                 {"sk-proj-", 60},
                                                                 {"sk-ant-api03-", 80},
                                                                 {"hf_", 34},
                                                                 {"npm_", 36},
                                                                 {"AIza", 35},
                                                                 {"GOCSPX-", 28}}) {
        const std::string key = key_of(prefix, static_cast<std::size_t>(length));
        EXPECT_EQ(seen("usa " + key + " ok"), Seen{"api_key:" + key}) << key;
    }
    expect_rows({
        {"AKIAIOSFODNN7EXAMPLE", {"api_key:AKIAIOSFODNN7EXAMPLE"}},
        {"sk-xxxxxxxxxxxxxxxxxxxxxxxx", {}},
        {"task-management-and-more-words-here", {}},
        {"123456789:AAHdqTcvCH1vGWJxfSeofSAs0K5PALDsaw9",
         {"api_key:123456789:AAHdqTcvCH1vGWJxfSeofSAs0K5PALDsaw9"}},
    });
}

TEST(Detector, FindsPasswordsInAssignments) {
    expect_rows({
        {"password=hunter22", {"api_key:hunter22"}},
        {R"({"api_key": "q8Zr2LmX0p"})", {"api_key:q8Zr2LmX0p"}},
        {"DB_PASSWORD: 'c0rrect-h0rse!'", {"api_key:c0rrect-h0rse!"}},
        {"La Password: Gatto#2024.", {"api_key:Gatto#2024"}},
        {"AccountKey=Zm9vYmFyYmF6cXV4MTIzNDU2Nzg5MA==;",
         {"api_key:Zm9vYmFyYmF6cXV4MTIzNDU2Nzg5MA=="}},
        {"Authorization: Bearer abcDEF123456ghiJKL789", {"api_key:abcDEF123456ghiJKL789"}},
        {"password: <your password>", {}},
        {"password=${PASSWORD1}", {}},
        {"password: ********", {}},
        {"token: string", {}},
        {"the token: 1234", {}},
    });
}

TEST(Detector, FindsJsonWebTokensByTheirHeader) {
    const std::string jwt =
        "eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3jVmNHl0w5N_X"
        "gL0n3I9PlFUP0THsR8U";
    EXPECT_EQ(seen("x " + jwt + " y"), Seen{"jwt:" + jwt});
    EXPECT_EQ(seen("eyJub3RoaW5nIjoxfQ.eyJzdWIiOiIxIn0.abc"), Seen{});
}

TEST(Detector, FindsPrivateKeysWholeOrCutOff) {
    const std::string pem =
        "-----BEGIN RSA PRIVATE KEY-----\nMIIE\nowIB\n-----END RSA PRIVATE KEY-----";
    EXPECT_EQ(seen("a\n" + pem + "\nb"), Seen{"private_key:" + pem});
    EXPECT_EQ(seen("-----BEGIN PRIVATE KEY-----\nMIIE"),
              Seen{"private_key:-----BEGIN PRIVATE KEY-----\nMIIE"});
    EXPECT_EQ(seen("-----BEGIN CERTIFICATE-----\nMIIE\n-----END CERTIFICATE-----"), Seen{});
}

// Case 27: the neighbours of an identifier do not matter, its span is in bytes.
TEST(Detector, GivesByteSpansBesideAnyCharacter) {
    for (const std::string neighbour :
         {"😀", "👨‍👩‍👧", "è", "\u0301", "שלום", "العربية", "\u200f", "日本", "“"}) {
        const std::string text = neighbour + "DE89370400440532013000" + neighbour;
        const auto findings = find(text);
        ASSERT_EQ(findings.size(), 1U) << text;
        EXPECT_EQ(findings[0].begin, neighbour.size()) << text;
        EXPECT_EQ(findings[0].end, neighbour.size() + 22) << text;
    }
}

TEST(Detector, JoinsWhatOverlaps) {
    // Case 28: an address inside a URL with credentials; a number that is two things.
    EXPECT_EQ(seen("http://user:mario@rossi.it@host.example"),
              Seen{"url_credentials:user:mario@rossi.it"});
    EXPECT_EQ(seen("tel 333.1234567@example.com"), Seen{"email:333.1234567@example.com"});
    std::vector<Finding> findings = {{FindingKind::person, Checksum::none, 4, 9},
                                     {FindingKind::iban, Checksum::valid, 0, 5},
                                     {FindingKind::email, Checksum::none, 9, 12}};
    settle("abcdefghijkl", findings);
    EXPECT_EQ(findings, (std::vector<Finding>{{FindingKind::iban, Checksum::valid, 0, 9},
                                              {FindingKind::email, Checksum::none, 9, 12}}));
}

TEST(Detector, MapsFindingsOfJsonBackToItsEscapes) {
    const std::string json =
        R"({"m":"mario@soci\u00e8t.it","k":"\u0049T60X0542811101000000123456\n"})";
    const auto findings = detector().find_json(json);
    ASSERT_EQ(findings.size(), 2U);
    const auto span = [&](std::size_t i) {
        return json.substr(findings[i].begin, findings[i].end - findings[i].begin);
    };
    EXPECT_EQ(span(0), R"(mario@soci\u00e8t.it)");
    EXPECT_EQ(span(1), R"(\u0049T60X0542811101000000123456)");
    EXPECT_EQ(detector()
                  .find_json(R"("-----BEGIN PRIVATE KEY-----\nMI\n-----END PRIVATE KEY-----\n")")
                  .at(0)
                  .kind,
              FindingKind::private_key);
}

void expect_sound(const std::string& text, const std::vector<Finding>& findings) {
    std::uint32_t last = 0;
    for (const Finding& finding : findings) {
        EXPECT_LE(last, finding.begin);
        EXPECT_LT(finding.begin, finding.end);
        ASSERT_LE(finding.end, text.size());
        EXPECT_TRUE(utf8_valid(text.substr(finding.begin, finding.end - finding.begin))) << text;
        last = finding.end;
    }
}

TEST(Detector, SpansAreSoundInRandomText) {
    const std::vector<std::string> pieces = {"IT60 X054 2811 1010 0000 0123 456",
                                             "RSSMRA80A01F205X",
                                             "mario@example.com",
                                             "è",
                                             "😀",
                                             "👨‍👩‍👧",
                                             " ",
                                             "\n",
                                             "+39 333 1234567",
                                             "https://a:b@c.d",
                                             "-----BEGIN PRIVATE KEY-----",
                                             "password=",
                                             "eyJhbGciOiJIUzI1NiJ9.e30.x",
                                             "4111 1111 1111 1111",
                                             "::",
                                             ":",
                                             "@",
                                             ".",
                                             "-",
                                             "2001:db8::1",
                                             "12/03/1980",
                                             "nato il ",
                                             "\u00a0",
                                             "例子.公司",
                                             "\\u00e8",
                                             "\\",
                                             "\"",
                                             "AB123CD",
                                             "(",
                                             ")",
                                             "/",
                                             "80380000123456789018",
                                             "sk-",
                                             "Bearer ",
                                             "a",
                                             "Z",
                                             "7",
                                             "x12"};
    std::mt19937 random(7);
    for (int round = 0; round < 5'000; ++round) {
        std::string text;
        for (unsigned i = 0; i < 1 + random() % 12; ++i)
            text += pieces[random() % pieces.size()];
        expect_sound(text, detector().find(text));
        expect_sound(text, detector().find_json(text));
    }
}

TEST(Detector, SearchesTextThatIsNotUtf8) {
    const std::string text = "\xff\xfe IT60X0542811101000000123456\xc3";
    const auto findings = find(text);
    ASSERT_EQ(findings.size(), 1U);
    EXPECT_EQ(findings[0].begin, 3U);
    for (int byte = 0x80; byte < 0x100; ++byte) {
        const std::string hostile(40, static_cast<char>(byte));
        EXPECT_TRUE(find(hostile + "@" + hostile + "." + hostile).size() <= 1);
    }
}

}  // namespace
}  // namespace molly::annotate
