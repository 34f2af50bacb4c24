// CSV: RFC 4180, comments, byte order mark, places of mistakes, the fast path, writing.

#include <catch.hpp>

#include <string>
#include <vector>

#include <servecap/io/csv.hpp>

using namespace servecap;

namespace {

std::vector<std::vector<std::string>> cells(std::string_view text) {
    auto const t = read_csv_table(text, "t.csv");
    REQUIRE(t.has_value());
    return t->rows;
}

Error mistake(std::string_view text) {
    auto const t = read_csv_table(text, "t.csv");
    REQUIRE_FALSE(t.has_value());
    return t.error();
}

using Rows = std::vector<std::vector<std::string>>;

} // namespace

TEST_CASE("csv: the forms of RFC 4180 give the same cells") {
    Rows const want{{"1", "x, y", "say \"hi\""}, {"2", "two\nlines", ""}};
    char const* const body = "1,\"x, y\",\"say \"\"hi\"\"\"\n2,\"two\nlines\",\n";
    std::string const plain = std::string{"a,b,c\n"} + body;
    CHECK(cells(plain) == want);
    CHECK(cells("\xEF\xBB\xBF" + plain) == want);
    CHECK(cells("# made by hand\na,b,c\n# a comment with one \" quote\n\n" + std::string{body} + "# end") == want);
    CHECK(cells(plain.substr(0, plain.size() - 1)) == want); // no line end after the last record
    CHECK(cells("a,b\r\n1,2\r\n3,4\r\n") == Rows{{"1", "2"}, {"3", "4"}});
    CHECK(cells("a,b\n 1 , 2 \n") == Rows{{"1", "2"}});
    CHECK(cells("a,b\n1,\"# not a comment\"\n") == Rows{{"1", "# not a comment"}});
    CHECK(cells("a,b\n").empty());
    CHECK(cells("a\n\"\"\n") == Rows{{""}});
}

TEST_CASE("csv: mistakes name the file, line and column") {
    CHECK(mistake("a,b\n1,2,3\n").where == "t.csv:2:1");
    CHECK(mistake("a,b\n1,2\n1\n").where == "t.csv:3:1");
    CHECK(mistake("a,b\n1,x\"y\n").where == "t.csv:2:4");
    CHECK(mistake("a,b\n1,\"open\n2,3\n").where == "t.csv:2:1");
    CHECK(mistake("a,b,a\n1,2,3\n").where == "t.csv:1:5");
    CHECK(mistake("").where == "t.csv:1:1");
    CHECK(mistake("# only a comment\n").message == "no header line");
    CHECK(mistake("\xFF\xFE"
                  "a")
              .hint == "save it as UTF-8");
    CHECK(mistake("a,b\n1,\xE9t\xE9\n").where == "t.csv:2:3");
    CHECK(mistake("a,b\n1,2\r3,4\n").message == "a carriage return inside a line");
    CHECK(mistake("a,b\n\"two\nlines\",\"x\"y\n").where == "t.csv:3:11");
}

TEST_CASE("csv: numbers, dates and missing columns are reported with the value and what was expected") {
    auto csv = CsvReader::open("\"name, x\",tp,util,day\n\"a, b\",eight,0.9,2026-02-30\n", "rows.csv");
    REQUIRE(csv);
    auto const tp = csv->required("tp");
    REQUIRE(csv->next());
    CHECK(csv->number(csv->optional("util"), 0, 1) == 0.9);
    CHECK_FALSE(csv->whole(tp, 1, 1024).has_value());
    REQUIRE(csv->failed());
    CHECK(csv->error().where == "rows.csv:2:8");
    CHECK(csv->error().message == "column \"tp\": \"eight\" is not a number");
    CHECK(csv->error().hint.find("1 to 1024") != std::string::npos);

    auto other = CsvReader::open("tp,util,day\n8.0,1.5,2026-02-30\n", "rows.csv");
    REQUIRE(other);
    REQUIRE(other->next());
    CHECK(other->whole(other->optional("tp"), 1, 1024) == 8);
    other->date(other->optional("day"));
    CHECK(other->error().message.find("is not a date") != std::string::npos);

    auto missing = CsvReader::open("model,gpus\n", "rows.csv");
    REQUIRE(missing);
    missing->required("gpu");
    REQUIRE(missing->failed());
    CHECK(to_line(missing->error()) == "rows.csv:1:1: column \"gpu\" is missing (did you mean gpus?)");
}

TEST_CASE("csv: values that look like numbers and are not") {
    for (char const* bad : {"1e400", "nan", "inf", "0x10", "1,000", "12abc", "--1", "1 2"}) {
        std::string const text = std::string{"v\n\""} + bad + "\"\n";
        auto csv = CsvReader::open(text, "t.csv");
        REQUIRE(csv);
        REQUIRE(csv->next());
        INFO(bad);
        CHECK_FALSE(csv->number(csv->optional("v"), -1e9, 1e9).has_value());
        CHECK(csv->failed());
    }
}

TEST_CASE("csv: limits stop files that are too big") {
    CsvLimits small;
    small.record_bytes = 40;
    small.rows = 2;
    CHECK_FALSE(read_csv_table("a\n\"" + std::string(100, '\n') + "\"\n", "t.csv", small).has_value());
    CHECK_FALSE(read_csv_table("a\n1\n2\n3\n", "t.csv", small).has_value());
    small.bytes = 3;
    CHECK_FALSE(read_csv_table("a\n1\n2\n", "t.csv", small).has_value());
    small = {};
    small.columns = 2;
    CHECK_FALSE(read_csv_table("a,b,c\n", "t.csv", small).has_value());
}

TEST_CASE("csv: reading some rows gives what reading all and choosing gives") {
    std::string const text =
        "x,model,n\n1,m1,a\n2,\"m1\",\"b\n,m1,\"\n# 9,m1,z\n3,m2,\"m1,\"\n\"4,m1\",m2,c\n5, m1 ,d\n6,m10,e\n7,m1,f";
    std::vector<std::string> some, all;
    auto fast = CsvReader::open(text, "t.csv");
    auto slow = CsvReader::open(text, "t.csv");
    REQUIRE(fast);
    REQUIRE(slow);
    auto const key = fast->required("model");
    while (fast->next_where(key, [](std::string_view m) { return m == "m1"; }))
        some.push_back(fast->string({0}) + "|" + fast->string({2}) + "|" + std::to_string(fast->line()));
    while (slow->next())
        if (slow->text(key) == "m1")
            all.push_back(slow->string({0}) + "|" + slow->string({2}) + "|" + std::to_string(slow->line()));
    CHECK(some == all);
    CHECK(some.size() == 4);
}

TEST_CASE("csv: what is written is read back") {
    CsvTable t;
    t.header = {"a", "b, c", "d"};
    t.rows = {{"# x", "say \"hi\"", ""}, {"", " blanks ", "two\r\nlines"}, {"plain", "1.5", "\xC3\xA9"}};
    std::string const text = write_csv_table(t);
    auto const back = read_csv_table(text, "t.csv");
    REQUIRE(back);
    CHECK(back->header == t.header);
    // Blanks around a cell are not kept by readers of these files.
    t.rows[1][1] = "blanks";
    CHECK(back->rows == t.rows);
}

TEST_CASE("csv: a first field that begins with a byte order mark keeps it") {
    CsvTable t;
    t.header = {"\xEF\xBB\xBF"
                "a",
                "b"};
    t.rows = {{"#", "\xEF\xBB\xBF"}};
    auto const back = read_csv_table(write_csv_table(t), "t.csv");
    REQUIRE(back);
    CHECK(back->header == t.header);
    CHECK(back->rows == t.rows);
}

TEST_CASE("csv: dates") {
    for (char const* good : {"2026", "2026-02", "2024-02-29", "2026-12-31"}) CHECK(is_iso_date(good));
    for (char const* bad : {"", "26", "2026-13", "2026-2", "2025-02-29", "2026-04-31", "2026/04/01", "2026-04-00", "about 2026"})
        CHECK_FALSE(is_iso_date(bad));
}
